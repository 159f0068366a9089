// An allreduce of ranks on one host, for messages so short that their way costs more than their bytes: each
// rank copies its values to memory that all share, and adds up what it finds there, in the order of ranks.
// Results are equal on all ranks and in every run.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/collective_algorithm.h"
#include "comm/shared_memory.h"

namespace plumb {

// Two slots for each rank, used in turn. Sums go one after another: who has published its values for sum n
// has read all of sum n - 1, so that whoever sees those of all ranks may overwrite its slot of n - 1.
class SharedSlots {
 public:
  // Every rank calls it, all on one host; `ranks` must outlive it. For messages of up to `most_bytes`.
  // Without shared memory they are slots for messages of up to 0 bytes.
  SharedSlots(const RanksByHost& ranks, std::size_t most_bytes);

  std::size_t most_bytes() const { return most_bytes_; }

 private:
  friend class SharedSum;

  struct alignas(16) Slot {
    std::uint64_t published;  // number of the sum that the values behind it belong to
    std::byte* values() { return reinterpret_cast<std::byte*>(this + 1); }  // short ones: the same cache line
  };
  Slot& slot(std::size_t position, std::uint64_t sum) const;

  const RanksByHost& ranks_;
  std::size_t most_bytes_, slot_bytes_;
  std::unique_ptr<SharedMemory> memory_;
  std::uint64_t started_ = 0, ended_ = 0;  // sums of this rank
};

class SharedSum : public CollectiveAlgorithm {
 public:
  explicit SharedSum(SharedSlots& slots) : slots_(slots) {}

  void start(const Work& work) override;
  void advance() override;
  bool ended() const override { return ended_; }

 private:
  void publish();
  bool all_published() const;
  void add_up() const;

  SharedSlots& slots_;
  Work work_ = {};
  std::uint64_t number_ = 0;
  unsigned polls_ = 0;
  bool published_ = false, ended_ = true;
};

}  // namespace plumb
