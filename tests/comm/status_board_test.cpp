#include "comm/status_board.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace plumb {
namespace {

TEST(StatusBoard, KeepsTheLastCollectivesInOrder) {
  StatusBoard board;
  EXPECT_TRUE(board.collectives().empty());
  for (int i = 1; i <= 100; ++i) {
    const std::uint64_t sequence = board.enter("allgather", "bucket" + std::to_string(i), 8);
    EXPECT_EQ(sequence, static_cast<std::uint64_t>(i));
    if (i != 99) board.leave(sequence);
  }
  board.leave(1);  // overwritten by the 65th
  const std::vector<EnteredCollective> records = board.collectives();
  ASSERT_EQ(records.size(), StatusBoard::kKept);
  EXPECT_EQ(records.front().sequence, 37u);
  EXPECT_EQ(records.back().sequence, 100u);
  EXPECT_STREQ(records.back().name.data(), "allgather bucket100");
  EXPECT_EQ(records.back().bytes, 8u);
  for (const EnteredCollective& record : records) EXPECT_EQ(record.under_way(), record.sequence == 99);
  EXPECT_EQ(board.status().entered, 100u);
}

TEST(StatusBoard, TellsPhaseAndIteration) {
  StatusBoard board;
  EXPECT_EQ(board.status().phase, RunPhase::starting);
  EXPECT_EQ(board.status().iteration, -1);
  const double since = board.status().phase_since;
  board.set_phase(RunPhase::starting);
  EXPECT_EQ(board.status().phase_since, since);
  board.set_phase(RunPhase::window);
  board.set_iteration(12);
  EXPECT_EQ(board.status().phase, RunPhase::window);
  EXPECT_GE(board.status().phase_since, since);
  EXPECT_EQ(board.status().iteration, 12);
}

TEST(StatusBoard, CutsLongNames) {
  StatusBoard board;
  board.enter("message", std::string(100, 'x'), 0);
  EXPECT_EQ(std::string(board.collectives().front().name.data()),
            "message " + std::string(EnteredCollective::kMostNameBytes - 8, 'x'));
}

// Records of a number and a name that belong together, however often they are overwritten meanwhile.
TEST(StatusBoard, IsReadWhileItIsWritten) {
  StatusBoard board;
  std::jthread writer([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const std::uint64_t next = board.status().entered + 1;
      board.leave(board.enter("allreduce_sum", std::to_string(next), next));
    }
  });
  std::uint64_t seen = 0;
  while (seen < 200'000) {
    for (const EnteredCollective& record : board.collectives()) {
      ASSERT_EQ(record.bytes, record.sequence);
      ASSERT_EQ(record.name.data(), "allreduce_sum " + std::to_string(record.sequence));
    }
    seen = board.status().entered;
  }
}

}  // namespace
}  // namespace plumb
