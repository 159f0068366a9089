// The one sentence: does it scale as it should, and if not, what holds it back?
#include "results/simulation/scaling_answer.h"

#include <string>
#include <utility>
#include <vector>

#include "tests/results/predicted_runs.h"

namespace plumb {
namespace {

class ScalingAnswerTest : public PredictionTest {
 protected:
  ScalingAnswerTest() { measure({1, 1}, 7); }

  ScalingAnswer answer(const Links& links = slow_links()) const {
    const JudgedScaling judged = judge(links);
    return answer_by(&judged);
  }
  ScalingAnswer answer_by(const JudgedScaling* judged, const std::vector<ScalingLoss>& losses = {}) const {
    const auto found = scaling_answer("ResNet-50 fp32", basis_.measured, losses, judged, "links.json");
    EXPECT_TRUE(found.has_value());
    return found.value_or(ScalingAnswer());
  }
  JudgedScaling judge(const Links& links) const {
    const ScalingPrediction prediction = predict_scaling(basis_, links, {}, cases_between(1, 4, 1));
    return {basis_, prediction, scaling_verdicts(basis_, prediction)};
  }
  // Ranks of the last case wait this long but for one, which computes longer than the others.
  void slow_down(std::size_t rank, double others_wait) {
    std::vector<RankRecord>& ranks = basis_.measured.back().record.ranks;
    for (RankRecord& one : ranks) one = {one.host, others_wait, 7.0, 0.0};
    ranks[rank] = {ranks[rank].host, 0.2, 7 + others_wait, 0.0};
    basis_.measured.back().record.exposed_communication_seconds = ranks[0].exposed_communication_seconds;
  }
};

ScalingLoss loss_to(int devices, double efficiency, ScalingLoss::Noise noise) {
  ScalingLoss loss;
  loss.smaller.nodes = loss.smaller.devices_per_node = loss.larger.devices_per_node = 1;
  loss.larger.nodes = devices;
  loss.efficiency_after = efficiency;
  loss.noise = noise;
  return loss;
}

TEST_F(ScalingAnswerTest, AsPredictedItScales) {
  measure({4, 1}, 7.35, 0.3);
  const ScalingAnswer found = answer();
  EXPECT_EQ(found.kind, ScalingAnswer::Kind::as_it_should);
  EXPECT_EQ(found.sentence,
            "ResNet-50 fp32 scales as it should: each of 4 devices (4n1g) reaches 95 % of a device alone (96 "
            "% predicted).");
}

TEST_F(ScalingAnswerTest, ASlowRankIsWhatHoldsItBack) {
  measure({4, 1}, 9.3);
  slow_down(2, 2.2);
  const ScalingAnswer found = answer();
  EXPECT_EQ(found.kind, ScalingAnswer::Kind::held_back);
  EXPECT_TRUE(found.sentence.starts_with(
      "ResNet-50 fp32 doesn't scale as it should: each of 4 devices (4n1g) reaches 75 % of a device alone "
      "where its "
      "links allow 96 %; rank 2 on n3 computes 9.2 s a step where the median is 7 s: the others wait "))
      << found.sentence;
}

TEST_F(ScalingAnswerTest, TheCaseFurthestBelowItsPredictionIsNamed) {
  measure({2, 1}, 14.4, 7.4);
  measure({4, 1}, 9.3, 2.3);
  EXPECT_NE(answer().sentence.find("(2n1g) reaches 49 %"), std::string::npos) << answer().sentence;
}

TEST_F(ScalingAnswerTest, LostTimeIsNamedByItsLargestPart) {
  const auto cause_of = [&](double step, double exposed, double data) {
    basis_.measured.resize(1);
    measure({2, 1}, step, exposed, data);
    const std::string sentence = answer().sentence;
    return sentence.substr(sentence.find("; ") + 2);
  };
  EXPECT_EQ(cause_of(9.2, 2.2, 0),
            "22 % of a step is lost in exposed communication that the links don't explain.");
  EXPECT_EQ(cause_of(9.2, 0.2, 2), "22 % of a step is lost waiting for data.");
  EXPECT_TRUE(cause_of(9.2, 0.2, 0).starts_with("22 % of a step is lost in computing and gaps"));
  basis_.measured.resize(1);
  measure({2, 1}, 9.2, 2.2).record.step_seconds.clear();
  EXPECT_NE(answer().sentence.find("its log doesn't tell why"), std::string::npos);
}

TEST_F(ScalingAnswerTest, BucketsBelowTheLinksBandwidthAreNamed) {
  measure({2, 1}, 9.2, 2.2).record.collectives = {
      collective_record("bucket0.allreduce", "allreduce_sum", 8 << 20, std::vector{1.2, 2.0})};
  EXPECT_NE(answer().sentence.find(", as its buckets reach 0.67 of the links' bandwidth."), std::string::npos)
      << answer().sentence;
}

TEST_F(ScalingAnswerTest, LinksThatHoldBackByThemselvesAreNamedWithTheSlowestOne) {
  Links links = slow_links();
  links.between_hosts.reset();
  using Hosts = std::vector<std::pair<std::string, std::string>>;
  for (const auto& [first, second] :
       Hosts{{"n1", "n2"}, {"n1", "n3"}, {"n1", "n4"}, {"n2", "n3"}, {"n2", "n4"}, {"n3", "n4"}})
    links.pairs.push_back({first, second, {0, (second == "n4" ? 1.0 : 10.0) * (1 << 20)}});
  const double step = judge(links).prediction.cases.back().step_seconds;
  measure({4, 1}, step, step - 7);
  const ScalingAnswer found = answer(links);
  EXPECT_EQ(found.kind, ScalingAnswer::Kind::held_back);
  EXPECT_NE(found.sentence.find("ResNet-50 fp32 is held back by its links: "), std::string::npos)
      << found.sentence;
  EXPECT_NE(found.sentence.find("and n4, carries 0.00105 GB/s, the median one "), std::string::npos)
      << found.sentence;
}

TEST_F(ScalingAnswerTest, AnImpossibleCaseJudgesNothing) {
  measure({2, 1}, 5);
  const ScalingAnswer found = answer();
  EXPECT_EQ(found.kind, ScalingAnswer::Kind::not_judged);
  EXPECT_TRUE(found.sentence.starts_with("ResNet-50 fp32 can't be judged: 2n1g with 2.8 images/s is "))
      << found.sentence;
}

TEST_F(ScalingAnswerTest, WithoutAPredictionTheLargestLossIsToldAndWhatWouldTellMore) {
  measure({4, 1}, 9.3);
  const ScalingAnswer found = answer_by(nullptr, {loss_to(4, 0.75, ScalingLoss::Noise::above)});
  EXPECT_EQ(found.kind, ScalingAnswer::Kind::not_judged);
  EXPECT_EQ(found.sentence,
            "ResNet-50 fp32 loses efficiency: each of 4 devices (4n1g) reaches 75 % of a device alone, 1 to "
            "4 devices "
            "lose 25 points of efficiency (100.0 % to 75.0 %); what its links allow is not known without "
            "links.json.");
  EXPECT_EQ(answer_by(nullptr, {loss_to(4, 0.75, ScalingLoss::Noise::within)}).kind,
            ScalingAnswer::Kind::not_judged);
}

TEST_F(ScalingAnswerTest, ALossBelowATenthIsNone) {
  measure({4, 1}, 7.5);
  for (const auto noise : {ScalingLoss::Noise::above, ScalingLoss::Noise::within})
    EXPECT_EQ(answer_by(nullptr, {loss_to(4, 0.93, noise)}).sentence,
              "ResNet-50 fp32 scales as it should: each of 4 devices (4n1g) reaches 93 % of a device alone.");
}

TEST_F(ScalingAnswerTest, ASlowRankIsNamedWithoutAPredictionToo) {
  measure({4, 1}, 9.3);
  slow_down(1, 2.2);
  const ScalingAnswer found = answer_by(nullptr, {loss_to(4, 0.75, ScalingLoss::Noise::above)});
  EXPECT_EQ(found.kind, ScalingAnswer::Kind::held_back);
  EXPECT_NE(found.sentence.find("; rank 1 on n2 computes "), std::string::npos) << found.sentence;
}

TEST_F(ScalingAnswerTest, OneCaseAloneHasNoAnswer) {
  EXPECT_FALSE(scaling_answer("ResNet-50 fp32", basis_.measured, {}, nullptr, "").has_value());
}

}  // namespace
}  // namespace plumb
