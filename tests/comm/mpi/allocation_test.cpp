// start(), progress() and wait() allocate nothing, so that none of it happens inside the timed window. Counts
// calls of operator new in this program; MPI's own memory comes from malloc.
#include <cstddef>
#include <cstdlib>
#include <new>

#include "comm/communicator.h"
#include "tests/comm/mpi/mpi_test.h"

namespace {

thread_local long allocations = 0;

void* counted(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
  ++allocations;
  return std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
}

void* or_throw(void* block) {
  if (!block) throw std::bad_alloc();
  return block;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return or_throw(counted(bytes));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return or_throw(counted(bytes, static_cast<std::size_t>(alignment)));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(bytes);
}
void operator delete(void* block) noexcept {
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept {
  std::free(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  std::free(block);
}

namespace plumb {
namespace {

using Allocation = MpiTest;

TEST_F(Allocation, CollectivesUnderWayNeedNone) {
  const auto communicator = make_mpi_communicator(job());
  std::vector<std::vector<float>> buffers;
  for (int i = 0; i < 6; ++i) buffers.emplace_back(i % 2 ? 100 : 200'000, 1.0f);
  std::vector<Communicator::Ticket> tickets(buffers.size());
  const long before = allocations;
  for (int iteration = 0; iteration < 3; ++iteration) {
    for (std::size_t i = 0; i < buffers.size(); ++i)
      tickets[i] = communicator->start({.elements = buffers[i].size(), .dtype = DType::f32},
                                       reinterpret_cast<std::byte*>(buffers[i].data()));
    communicator->progress();
    for (Communicator::Ticket ticket : tickets) communicator->wait(ticket);
  }
  EXPECT_EQ(allocations, before);
  EXPECT_GT(before, 0) << "the counter doesn't count";
}

// One that is over as soon as it starts, as a single rank's are, is dropped like any other.
TEST_F(Allocation, EndedCollectivesPileUpNowhere) {
  const auto communicator = make_mpi_communicator(job());
  std::vector<float> values(100, 1.0f);
  const long before = allocations;
  for (int i = 0; i < 1000; ++i)
    communicator->wait(communicator->start({.elements = values.size(), .dtype = DType::f32},
                                           reinterpret_cast<std::byte*>(values.data())));
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace plumb
