#include "comm/watchdog/hang_detector.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace plumb {
namespace {

constexpr WatchLimits kLimits{.timeout_seconds = 30, .startup_timeout_seconds = 600};

RankSummary training(std::uint64_t entered, std::uint64_t oldest = 0, std::uint64_t bytes = 0) {
  RankSummary summary{.phase = RunPhase::window,
                      .iteration = 17,
                      .entered = entered,
                      .oldest = {.sequence = oldest, .bytes = bytes},
                      .bytes_under_way = bytes};
  if (oldest != 0) summary.oldest.name = {'b', 'u', 'c', 'k', 'e', 't', '0'};
  return summary;
}

// Ranks that send a heartbeat a second, and say each time what they said before.
class Ranks {
 public:
  explicit Ranks(std::vector<RankSummary> says, const WatchLimits& limits = kLimits)
      : says_(std::move(says)), detector_(static_cast<int>(says_.size()), limits, 0) {}

  // Goes on until `end`, or until there is a verdict.
  std::optional<Verdict> until(double end) {
    for (; now_ < end; now_ += 0.5) {
      for (std::size_t rank = 0; rank < says_.size(); ++rank)
        if (!stopped_.contains(static_cast<int>(rank)))
          detector_.heard(static_cast<int>(rank), says_[rank], now_);
      if (const auto verdict = detector_.look(now_)) return verdict;
    }
    return std::nullopt;
  }
  RankSummary& says(std::size_t rank) { return says_[rank]; }
  void stop(int rank) { stopped_.insert(rank); }
  void go_on(int rank) { stopped_.erase(rank); }
  double now() const { return now_; }
  HangDetector& detector() { return detector_; }

 private:
  std::vector<RankSummary> says_;
  HangDetector detector_;
  std::set<int> stopped_;
  double now_ = 0;
};

TEST(HangDetector, HasNothingAgainstRanksThatComputeForLong) {
  Ranks ranks({training(5), training(5), training(5)});
  EXPECT_FALSE(ranks.until(10'000));
}

TEST(HangDetector, NamesTheRankThatSendsNothing) {
  Ranks ranks({training(5), training(5), training(5)});
  ranks.until(10);
  ranks.stop(1);
  const auto verdict = ranks.until(100);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->kind, Verdict::Kind::silent);
  EXPECT_EQ(verdict->rank, 1);
  EXPECT_GT(verdict->seconds, 30);
  EXPECT_LT(ranks.now(), 10 + 30 + 2);
}

TEST(HangDetector, WaitsForARankThatIsStoppedForAWhile) {
  Ranks ranks({training(5), training(5)});
  ranks.until(10);
  ranks.stop(1);
  EXPECT_FALSE(ranks.until(35));
  ranks.go_on(1);
  EXPECT_FALSE(ranks.until(200));
}

TEST(HangDetector, CallsAStoppedRankSilentThoughOthersAwaitedItBefore) {
  Ranks ranks({training(5, 5), training(4)});
  ranks.until(2);
  ranks.stop(1);
  const auto verdict = ranks.until(100);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->kind, Verdict::Kind::silent);
  EXPECT_NEAR(verdict->seconds, 30, 1);
}

TEST(HangDetector, BlamesNoOtherRankForTheOneThatWentSilentLater) {
  for (const RankSummary& other : {training(5, 5), training(4)}) {  // stuck, or late
    Ranks ranks({training(5, 5), other, training(5, 5)});
    ranks.until(10);
    ranks.stop(2);
    const auto verdict = ranks.until(100);
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->kind, Verdict::Kind::silent);
    EXPECT_EQ(verdict->rank, 2);
    EXPECT_LT(ranks.now(), 10 + 30 + 2);
  }
}

TEST(HangDetector, NamesTheRankThatDoesNotEnterAndTheCollective) {
  Ranks ranks({training(57, 57, 4096), training(56), training(57, 57, 4096)});
  const auto verdict = ranks.until(100);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->kind, Verdict::Kind::not_entered);
  EXPECT_EQ(verdict->rank, 1);
  EXPECT_EQ(verdict->missing.sequence, 57u);
  EXPECT_LT(ranks.now(), 32);
  const std::string sentence = sentence_of(*verdict, {"n2", 4711}, kLimits);
  for (const char* word :
       {"rank 1 on n2 (pid 4711)", "bucket0 (number 57)", "the window, iteration 17", "--timeout-s 30"})
    EXPECT_NE(sentence.find(word), std::string::npos) << word << " is missing in: " << sentence;
}

TEST(HangDetector, CountsFromWhenARankLastEnteredOne) {
  Ranks ranks({training(9, 7), training(5)});
  EXPECT_FALSE(ranks.until(29));
  ranks.says(1).entered = 6;
  EXPECT_FALSE(ranks.until(58));
  EXPECT_TRUE(ranks.until(61));
}

TEST(HangDetector, GivesPreparationLonger) {
  RankSummary late = training(1);
  late.phase = RunPhase::tuning;
  Ranks ranks({training(2, 2), late});
  EXPECT_FALSE(ranks.until(599));
  EXPECT_EQ(ranks.until(603)->kind, Verdict::Kind::not_entered);
}

// 102 MB over two ranks at 10 Mbit/s take 82 s.
TEST(HangDetector, GivesBytesThatAllSendTime) {
  constexpr std::uint64_t kBytes = 102'000'000;
  Ranks ranks({training(5, 5, kBytes), training(5, 5, kBytes)});
  EXPECT_FALSE(ranks.until(30 + 102 - 1));
  const auto verdict = ranks.until(200);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->kind, Verdict::Kind::not_ended);
  EXPECT_EQ(verdict->missing.sequence, 5u);
  EXPECT_DOUBLE_EQ(allowance_seconds(kBytes, 2), 102);
  EXPECT_DOUBLE_EQ(allowance_seconds(kBytes, 4), 153);
}

TEST(HangDetector, CountsFromTheLastCollectiveThatEnded) {
  Ranks ranks({training(9, 7), training(9, 7)});
  EXPECT_FALSE(ranks.until(29));
  ranks.says(0).oldest.sequence = 8;
  EXPECT_FALSE(ranks.until(58));
  EXPECT_EQ(ranks.until(62)->missing.sequence, 7u);
}

TEST(HangDetector, TakesAClosedConnectionForALossUnlessTheRankWasEnding) {
  Ranks ranks({training(5), training(5), training(5), training(5)});
  ranks.says(2).phase = RunPhase::ending;
  ranks.until(5);
  ranks.detector().has_left(3);
  EXPECT_EQ(ranks.detector().closed(1)->rank, 1);
  EXPECT_FALSE(ranks.detector().closed(2));
  EXPECT_FALSE(ranks.detector().closed(3));
}

TEST(HangDetector, DoesNotWaitForRanksThatSaidGoodbye) {
  Ranks ranks({training(5, 5), training(4)});
  ranks.detector().has_left(1);
  ranks.stop(1);
  EXPECT_EQ(ranks.until(100)->kind, Verdict::Kind::not_ended);
}

TEST(Summary, IsOfTheOldestCollectiveUnderWay) {
  StatusBoard board;
  board.set_phase(RunPhase::warmup);
  const std::uint64_t first = board.enter("allgather", "features", 10);
  board.enter("allreduce_sum", "bucket1", 20);
  board.enter("allreduce_sum", "bucket2", 30);
  EXPECT_EQ(summary_of(board).oldest.sequence, first);
  board.leave(first);
  const RankSummary summary = summary_of(board);
  EXPECT_EQ(summary.phase, RunPhase::warmup);
  EXPECT_EQ(summary.entered, 3u);
  EXPECT_EQ(summary.oldest.sequence, 2u);
  EXPECT_STREQ(summary.oldest.name.data(), "allreduce_sum bucket1");
  EXPECT_EQ(summary.bytes_under_way, 50u);
}

}  // namespace
}  // namespace plumb
