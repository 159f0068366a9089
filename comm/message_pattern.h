// Integers that fill messages, so that every element of a result is known and sums are exact in every dtype.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "kernels/program/program.h"

namespace plumb {

// Values before and after one collective over `world_size` ranks. A value depends on the rank and, through a
// hash, on the element, so that exchanged pieces are found. Sums stay where the dtype holds every integer;
// ranks beyond that add zeros.
class MessagePattern {
 public:
  MessagePattern(const Collective& collective, int rank, int world_size);

  // The buffer's bytes before the collective, from element `first` on. Elements that it overwrites are wrong.
  void fill(std::span<std::byte> bytes, std::size_t first = 0) const;

  struct Wrong {
    std::size_t elements = 0;
    std::size_t first = 0;  // index of the first one
    double found = 0, wanted = 0;
    bool operator==(const Wrong&) const = default;
  };
  // Elements that differ from what the collective should have left on this rank, among those from `first` on.
  // Other ranks' parts of a reduce-scatter may hold anything.
  Wrong check(std::span<const std::byte> bytes, std::size_t first = 0) const;

 private:
  std::size_t place(std::size_t element) const;  // its hash, below values_
  int before(std::size_t element) const;
  std::optional<int> after(std::size_t element) const;  // nothing: any value
  int value(std::size_t element, int rank) const;
  int owner(std::size_t element) const;

  Collective collective_;
  bool moves_;  // values depend on more than the element's place
  int rank_ = 0, size_ = 1;
  int values_ = 1;  // 0 … values_ - 1
  int contributing_ranks_ = 1;
  std::vector<int> reduced_;  // sum or maximum over ranks, by the element's place
};

}  // namespace plumb
