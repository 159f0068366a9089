// R11 and R15: an invalid measurement never yields a score.
#include <gtest/gtest.h>

#include <limits>

#include "models/weights.h"
#include "tests/faults/started_program.h"

namespace plumb {
namespace {

// At most four lines: messages before the failure, and last the failure itself.
void expect_failure_told(const Ended& ended, const std::vector<std::string>& words) {
  EXPECT_EQ(ended.exit_code, kVerificationFailed) << ended.launcher_messages;
  ASSERT_FALSE(ended.lines.empty());
  EXPECT_LE(ended.lines.size(), 4u);
  EXPECT_TRUE(ended.lines.back().starts_with("bench_"));
  for (const std::string& word : words)
    EXPECT_NE(ended.lines.back().find(word), std::string::npos) << ended.lines.back();
}

TEST(NoScore, LearningRateThatDiverges) {
  const Place place;
  expect_failure_told(place.run(place.bench(kSmall + "--iters 4 --lr 1e30")), {"not finite", "--lr 1e+30"});
  expect_no_score(place, "not finite");
  EXPECT_EQ(place.contents_ending_in(".log.part").size(), 1u);
}

TEST(NoScore, LearningRateThatDivergesOnTwoRanks) {
  const Place place;
  expect_failure_told(place.run(Place::mpirun(2, place.bench(kSmall + "--iters 4 --lr 1e30"))),
                      {"not finite", "rank 0"});
  expect_no_score(place, "not finite");
}

// Replicas stay identical, so no check after the run would find it.
TEST(NoScore, SumThatIsWrongOnAllRanksAlike) {
  for (const std::string dtype : {"f32", "f16"}) {
    const Place place;
    const std::string options = dtype == "f16" ? "--iters 2 --reduce-dtype fp16" : "--iters 2";
    expect_failure_told(
        place.run(Place::mpirun(2, place.damaged(kSmall + options)), "PLUMB_DAMAGE=wrong_sum"),
        {"rank 0 on ", "bucket0.allreduce (", dtype + " over mpi) is wrong", "element ", "instead of"});
    expect_no_score(place, "is wrong on rank 0");
    EXPECT_EQ(place.result().at("checks").at("sums_exact"), false);
  }
}

void write_poisoned_batch(const Place& place, float poison = std::numeric_limits<float>::quiet_NaN()) {
  TensorFile file;
  file.floats["images"] = {{2, 3, 32, 32}, std::vector<float>(2 * 3 * 32 * 32, 0.5f)};
  file.floats["images"].values[100] = poison;
  file.integers["labels"] = {{2}, {1, 2}};
  write_safetensors(place.file("batch.safetensors"), file);
}

// A ReLU turns NaN into 0, so the loss may stay finite while statistics and weights are lost.
TEST(NoScore, PoisonedBatch) {
  const Place place;
  write_poisoned_batch(place);
  expect_failure_told(place.run(place.resnet50(kSmallImages + "--iters 2 --batch-file batch.safetensors")),
                      {"not finite", "check the data"});
  expect_no_score(place, "not finite");
}

TEST(NoScore, PoisonedBatchOfAnUncheckedRun) {
  using Limits = std::numeric_limits<float>;
  for (const float poison : {Limits::quiet_NaN(), Limits::infinity()}) {
    const Place place;
    write_poisoned_batch(place, poison);
    expect_failure_told(
        place.run(place.resnet50(kSmallImages + "--iters 2 --no-check --batch-file batch.safetensors")),
        {"not finite", "check the data"});
    expect_no_score(place, "not finite");
    EXPECT_EQ(place.result().at("checks").at("replicas_identical"), "skipped");
  }
}

TEST(NoScore, PoisonThatOnlyAnotherRankHas) {
  const Place place;
  expect_failure_told(place.run(Place::mpirun(2, place.damaged(kSmall + "--iters 2")), "PLUMB_DAMAGE=poison"),
                      {"not finite"});
  expect_no_score(place, "not finite");
  EXPECT_EQ(place.result().at("checks").at("tensors_finite"), false);
}

TEST(NoScore, ReplicaThatDiffersInOneValueAtTheEnd) {
  const Place place;
  expect_failure_told(
      place.run(Place::mpirun(2, place.damaged(kSmall + "--iters 2")), "PLUMB_DAMAGE=corrupt_at_the_end"),
      {"rank 1", "differ"});
  expect_no_score(place, "differ");
  EXPECT_EQ(place.result().at("checks").at("replicas_identical"), false);
}

// The same program without fault injection passes: the tests above see only the damage.
TEST(NoScore, UndamagedRunIsOne) {
  const Place place;
  const Ended ended = place.run(Place::mpirun(2, place.damaged(kSmall + "--iters 2")));
  EXPECT_EQ(ended.exit_code, 0) << ended.launcher_messages;
  EXPECT_EQ(place.result().at("status"), "ok");
  EXPECT_EQ(place.result().at("checks").at("sums_exact"), true);
  EXPECT_EQ(place.contents_ending_in(".log").size(), 1u);
}

}  // namespace
}  // namespace plumb
