// The order in which a job goes through its images.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace plumb {

// A shuffled order of [0, count) for each epoch, as a function: no memory, no state, the same on every rank.
class ShuffledOrder {
 public:
  // count in [1, 2^62]
  ShuffledOrder(std::uint64_t seed, std::uint64_t count);
  // Position in [0, count) -> image; over all positions every image comes exactly once.
  std::uint64_t at(std::uint64_t epoch, std::uint64_t position) const;
  std::uint64_t count() const { return count_; }

 private:
  // A Feistel network makes a pseudo-random permutation of the numbers of an even number of bits (Luby and
  // Rackoff, 1988; ten rounds as in NIST SP 800-38G, since folders may be small); what falls outside [0,
  // count) is permuted again (cycle walking; Black and Rogaway, 2002).
  std::uint64_t permuted(std::uint64_t epoch, std::uint64_t number) const;

  PhiloxKey key_;
  std::uint64_t count_;
  int half_bits_;
};

}  // namespace plumb
