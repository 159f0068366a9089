#include "comm/shared_sum.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "comm/mpi_check.h"

namespace plumb {
namespace {

// Above 2 KiB or so std::memcpy takes `rep movsb`, which between two cores' caches takes twice as long as its
// loop for shorter ones.
void copy_values(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kAtOnce = 1024;
  for (std::size_t begin = 0; begin < bytes; begin += kAtOnce)
    std::memcpy(to + begin, from + begin, std::min(kAtOnce, bytes - begin));
}

}  // namespace

SharedSlots::SharedSlots(const RanksByHost& ranks, std::size_t most_bytes)
    : ranks_(ranks),
      most_bytes_(most_bytes),
      slot_bytes_(CacheLine::lines_of(sizeof(Slot) + most_bytes) * sizeof(CacheLine)),
      memory_(SharedMemory::make(ranks.communicator, 2 * ranks.ranks.size() * slot_bytes_)) {
  if (!memory_) most_bytes_ = 0;
}

SharedSlots::Slot& SharedSlots::slot(std::size_t position, std::uint64_t sum) const {
  return *reinterpret_cast<Slot*>(memory_->data() + (2 * position + sum % 2) * slot_bytes_);
}

void SharedSum::start(const Work& work) {
  work_ = work;
  number_ = ++slots_.started_;
  published_ = ended_ = false;
  advance();
}

void SharedSum::advance() {
  if (ended_ || slots_.ended_ + 1 != number_) return;
  if (!published_) publish();
  if (all_published()) {
    add_up();
    slots_.ended_ = number_;
    ended_ = true;
    return;
  }
  // Messages of other collectives may wait in MPI for a call, and where ranks share a core MPI gives it away.
  constexpr unsigned kPollsWithoutMpi = 64;
  if (++polls_ % kPollsWithoutMpi != 0) return;
  int arrived = 0;
  check(MPI_Iprobe(MPI_ANY_SOURCE, 0, slots_.ranks_.communicator, &arrived, MPI_STATUS_IGNORE), "MPI_Iprobe");
}

void SharedSum::publish() {
  SharedSlots::Slot& mine = slots_.slot(slots_.ranks_.position, number_);
  copy_values(mine.values(), work_.data, work_.elements * work_.element_bytes);
  std::atomic_ref(mine.published).store(number_, std::memory_order_release);
  published_ = true;
}

bool SharedSum::all_published() const {
  for (std::size_t position = 0; position < slots_.ranks_.ranks.size(); ++position)
    if (std::atomic_ref(slots_.slot(position, number_).published).load(std::memory_order_acquire) != number_)
      return false;
  return true;
}

void SharedSum::add_up() const {
  if (slots_.ranks_.position != 0)
    copy_values(work_.data, slots_.slot(0, number_).values(), work_.elements * work_.element_bytes);
  for (std::size_t position = 1; position < slots_.ranks_.ranks.size(); ++position)
    check(MPI_Reduce_local(slots_.slot(position, number_).values(), work_.data,
                           static_cast<int>(work_.elements), work_.type, work_.operation),
          "MPI_Reduce_local");
}

}  // namespace plumb
