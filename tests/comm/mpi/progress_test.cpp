#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/communicator.h"
#include "tests/comm/mpi/mpi_test.h"

namespace plumb {
namespace {

using Progress = MpiTest;

constexpr std::size_t kBucketElements = (25u << 20) / sizeof(float);
constexpr int kMostCalls = 10'000;

// Simulates a compute instruction: the caller stays out of MPI meanwhile.
void compute_for_a_while() {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

TEST_F(Progress, BetweenStepsABucketEndsBeforeItIsWaitedFor) {
  const auto communicator = make_mpi_communicator(job());
  std::vector<float> values(kBucketElements, static_cast<float>(job().rank() + 1));
  const Communicator::Ticket ticket = communicator->start({.elements = values.size(), .dtype = DType::f32},
                                                          reinterpret_cast<std::byte*>(values.data()));
  int calls = 0;
  for (; calls < kMostCalls && !communicator->done(ticket); ++calls) {
    compute_for_a_while();
    communicator->progress();
  }
  EXPECT_TRUE(communicator->done(ticket)) << "still under way after " << calls << " calls of progress()";
  const float sum = static_cast<float>(job().size() * (job().size() + 1)) / 2;
  for (float value : values) ASSERT_EQ(value, sum);
  if (job().rank() == 0) RecordProperty("progress_calls", calls);
  communicator->wait(ticket);
}

TEST_F(Progress, MovesSeveralBucketsOn) {
  const auto communicator = make_mpi_communicator(job());
  std::vector<std::vector<float>> buffers(4, std::vector<float>(300'000, 1.0f));
  std::vector<Communicator::Ticket> tickets;
  for (std::vector<float>& buffer : buffers) {
    tickets.push_back(communicator->start({.elements = buffer.size(), .dtype = DType::f32},
                                          reinterpret_cast<std::byte*>(buffer.data())));
  }
  const auto all_done = [&] {
    return std::all_of(tickets.begin(), tickets.end(),
                       [&](auto ticket) { return communicator->done(ticket); });
  };
  for (int calls = 0; calls < kMostCalls && !all_done(); ++calls) {
    compute_for_a_while();
    communicator->progress();
  }
  EXPECT_TRUE(all_done());
  for (const std::vector<float>& buffer : buffers) {
    EXPECT_EQ(buffer, std::vector<float>(buffer.size(), static_cast<float>(job().size())));
  }
}

TEST_F(Progress, WithNothingUnderWayDoesNothing) {
  const auto communicator = make_mpi_communicator(job());
  for (int i = 0; i < 1000; ++i) communicator->progress();
}

}  // namespace
}  // namespace plumb
