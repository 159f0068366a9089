#include "comm/recursive_doubling.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>

namespace plumb {
namespace {

// A rank that carries out its steps whenever its partner's next step is with it.
struct SimulatedRank {
  std::vector<RecursiveDoubling::Step> steps;
  std::uint64_t value;
  std::size_t done = 0;

  const RecursiveDoubling::Step* next() const { return done < steps.size() ? &steps[done] : nullptr; }
  void carry_out(std::uint64_t received) {
    if (next()->receives) value = next()->adds ? value + received : received;
    ++done;
  }
};

std::vector<SimulatedRank> simulated_ranks(std::size_t count) {
  std::vector<int> ranks(count);
  std::iota(ranks.rbegin(), ranks.rend(), 0);
  std::vector<SimulatedRank> all(count);
  for (std::size_t position = 0; position < count; ++position)
    all[static_cast<std::size_t>(ranks[position])] = {
        RecursiveDoubling::steps_of({MPI_COMM_NULL, position, ranks}), std::uint64_t{1} << (2 * position)};
  return all;
}

// Whether two ranks met.
bool meet(std::vector<SimulatedRank>& ranks) {
  for (std::size_t first = 0; first < ranks.size(); ++first) {
    const auto* mine = ranks[first].next();
    if (!mine) continue;
    SimulatedRank& other = ranks[static_cast<std::size_t>(mine->partner)];
    const auto* theirs = other.next();
    if (!theirs || theirs->partner != static_cast<int>(first)) continue;
    EXPECT_EQ(mine->sends, theirs->receives);
    EXPECT_EQ(mine->receives, theirs->sends);
    const std::uint64_t sent = ranks[first].value, received = other.value;
    ranks[first].carry_out(received);
    other.carry_out(sent);
    return true;
  }
  return false;
}

TEST(RecursiveDoublingSteps, AddEveryRankOnceWhateverTheirNumber) {
  for (std::size_t count = 1; count <= 17; ++count) {
    std::vector<SimulatedRank> ranks = simulated_ranks(count);
    std::uint64_t sum = 0;
    for (const SimulatedRank& rank : ranks) sum += rank.value;
    while (meet(ranks)) {
    }
    for (const SimulatedRank& rank : ranks) {
      EXPECT_EQ(rank.value, sum) << count << " ranks";
      EXPECT_EQ(rank.done, rank.steps.size()) << count << " ranks";
    }
  }
}

}  // namespace
}  // namespace plumb
