// cluster_allreduce BYTES TIMES [RING_FROM_BYTES [MESSAGE_BYTES]]: sums a buffer of floats over all ranks,
// TIMES times after one that doesn't count, checks every element, and prints the median, over TIMES, of the
// slowest rank's seconds. With RING_FROM_BYTES above BYTES it is MPI's own.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "comm/communicator.h"
#include "comm/job.h"

namespace {

// Seconds of one allreduce on this rank, all ranks having started together.
double seconds_of(const plumb::Job& job, plumb::Communicator& communicator, std::vector<float>& values) {
  std::fill(values.begin(), values.end(), static_cast<float>(job.rank() + 1));
  job.barrier();
  const auto start = std::chrono::steady_clock::now();
  communicator.wait(communicator.start({.elements = values.size(), .dtype = plumb::DType::f32},
                                       reinterpret_cast<std::byte*>(values.data())));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool are_sums(const plumb::Job& job, const std::vector<float>& values) {
  const auto sum = static_cast<float>(job.size() * (job.size() + 1) / 2);
  return std::all_of(values.begin(), values.end(), [&](float value) { return value == sum; });
}

int run(const plumb::Job& job, int count, char** words) {
  const auto number = [&](int i) { return static_cast<std::size_t>(std::strtoull(words[i], nullptr, 10)); };
  plumb::MpiCommunicatorOptions options;
  if (count > 3) options.ring_from_bytes = number(3);
  if (count > 4) options.message_bytes = number(4);
  const auto communicator = plumb::make_mpi_communicator(job, options);
  std::vector<float> values(number(1) / sizeof(float));
  seconds_of(job, *communicator, values);
  std::vector<double> mine(number(2));
  bool right = true;
  for (double& seconds : mine) {
    seconds = seconds_of(job, *communicator, values);
    right = right && are_sums(job, values);
  }
  const std::vector<double> all = job.gather(mine);
  if (job.rank() > 0) return right ? 0 : 1;
  std::vector<double> slowest(mine.size(), 0);
  for (std::size_t i = 0; i < all.size(); ++i)
    slowest[i % mine.size()] = std::max(slowest[i % mine.size()], all[i]);
  std::nth_element(slowest.begin(), slowest.begin() + static_cast<long>(slowest.size() / 2), slowest.end());
  std::printf("ranks %d bytes %zu seconds %.6f %s\n", job.size(), values.size() * sizeof(float),
              slowest[slowest.size() / 2], right ? "right" : "wrong");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const plumb::Job job(&argc, &argv);
  if (argc < 3) return 64;
  return run(job, argc, argv);
}
