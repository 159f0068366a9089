#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "bench/data/image_loader.h"

namespace plumb {
namespace {

TEST(ByteBudget, ThreadsNeverHoldMoreThanItTogether) {
  constexpr std::size_t kBudget = 10, kTurns = 2000;
  ByteBudget budget(kBudget);
  std::atomic<std::size_t> held = 0;
  std::atomic<bool> was_exceeded = false;
  const auto take_turns = [&](std::size_t thread) {
    for (std::size_t turn = 0; turn < kTurns; ++turn) {
      const std::size_t bytes = (turn + 3 * thread) % (kBudget + 1);
      const ByteBudget::Share share(budget, bytes);
      if (held.fetch_add(bytes) + bytes > kBudget) was_exceeded = true;
      std::this_thread::yield();
      held -= bytes;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < 4; ++thread) threads.emplace_back(take_turns, thread);
  }
  EXPECT_FALSE(was_exceeded);
}

}  // namespace
}  // namespace plumb
