// Collectives staged through page-locked memory between the lanes of an emulated GPU, as in the runner.
#include <vector>

#include "comm/mpi_communicator.h"
#include "comm/staged_communicator.h"
#include "kernels/cuda/runtime/lanes.h"
#include "kernels/cuda/runtime/runtime.h"
#include "tests/comm/mpi/mpi_test.h"

namespace plumb {
namespace {

using cuda::check;

class StagedOnGpu : public MpiTest {
 protected:
  DeviceCopies copies() {
    const auto copy = [this](std::byte* to, const std::byte* from, std::size_t bytes) {
      enqueue_copy(to, from, bytes, Lane::communication);
    };
    return {.allocate_pinned = [](std::size_t bytes) -> std::shared_ptr<std::byte> {
              return cuda::allocate_pinned(bytes);
            },
            .to_host = copy,
            .to_device = copy,
            .mark = [this] { return lanes.mark(Lane::communication); },
            .reached = [this](std::size_t mark) { return lanes.reached(mark); }};
  }
  void enqueue_copy(std::byte* to, const std::byte* from, std::size_t bytes, Lane lane) const {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, lanes.stream(lane)));
  }
  // Element i of `bucket` in an iteration, on one rank.
  static float gradient(std::size_t bucket, int iteration, int rank) {
    return static_cast<float>(static_cast<int>(bucket + 1) * (iteration + 1) * (rank + 1));
  }

  cuda::Lanes lanes;
};

TEST_F(StagedOnGpu, UpdatesSeeSumsOfGradientsThatTheSameIterationMade) {
  constexpr int kIterations = 4;
  const std::vector<std::size_t> elements{5, 4000, 1, 70'001};
  const auto staged = make_staged_communicator(make_mpi_communicator(job()), copies());
  // Each iteration's backward output, the gradients, and the values its update read.
  std::vector<cuda::DeviceMemory> made, gradients, updates;
  for (std::size_t bucket = 0; bucket < elements.size(); ++bucket) {
    const std::size_t bytes = elements[bucket] * sizeof(float);
    std::vector<float> values;
    for (int iteration = 0; iteration < kIterations; ++iteration)
      values.insert(values.end(), elements[bucket], gradient(bucket, iteration, job().rank()));
    made.push_back(cuda::allocate_device(bytes * kIterations));
    check(cudaMemcpy(made.back().get(), values.data(), bytes * kIterations, cudaMemcpyHostToDevice));
    gradients.push_back(cuda::allocate_device(bytes));
    updates.push_back(cuda::allocate_device(bytes * kIterations));
  }
  for (std::size_t iteration = 0; iteration < kIterations; ++iteration) {
    std::vector<Communicator::Ticket> tickets;
    for (std::size_t bucket = 0; bucket < elements.size(); ++bucket) {
      const std::size_t bytes = elements[bucket] * sizeof(float);
      enqueue_copy(gradients[bucket].get(), made[bucket].get() + iteration * bytes, bytes, Lane::compute);
      lanes.signal(bucket, Lane::compute);
      lanes.wait(bucket, Lane::communication);
      tickets.push_back(
          staged->start({.elements = elements[bucket], .dtype = DType::f32}, gradients[bucket].get()));
      staged->progress();
    }
    for (std::size_t bucket = 0; bucket < elements.size(); ++bucket) {
      const std::size_t bytes = elements[bucket] * sizeof(float), signal = elements.size() + bucket;
      staged->wait(tickets[bucket]);
      lanes.signal(signal, Lane::communication);
      lanes.wait(signal, Lane::compute);
      enqueue_copy(updates[bucket].get() + iteration * bytes, gradients[bucket].get(), bytes, Lane::compute);
    }
  }
  lanes.synchronize();
  for (std::size_t bucket = 0; bucket < elements.size(); ++bucket) {
    std::vector<float> read(elements[bucket] * kIterations), wanted;
    check(
        cudaMemcpy(read.data(), updates[bucket].get(), read.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int iteration = 0; iteration < kIterations; ++iteration) {
      float sum = 0;
      for (int rank = 0; rank < job().size(); ++rank) sum += gradient(bucket, iteration, rank);
      wanted.insert(wanted.end(), elements[bucket], sum);
    }
    EXPECT_TRUE(read == wanted) << "bucket " << bucket;
  }
}

}  // namespace
}  // namespace plumb
