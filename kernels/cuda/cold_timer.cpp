// Times GPU work as in a training step: with operands in main memory, not in the L2 cache. And its energy.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/instruction_tuner.h"

namespace plumb::cuda {
namespace {

// Large enough that the host enqueues the work during this read and the GPU doesn't wait for it: 200 MB take
// some 60 us on an H200, a launch 5 to 20 us.
constexpr std::size_t kCacheSizesRead = 4;
// The cache is flushed by adding up the columns of a matrix with so many rows: sums are next to nothing.
constexpr std::int64_t kFlushRows = 1024;

std::size_t cache_bytes() {
  int device = 0;
  check(cudaGetDevice(&device));
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device));
  return static_cast<std::size_t>(properties.l2CacheSize);
}

}  // namespace

ColdTimer::ColdTimer(cudaStream_t stream)
    : stream_(stream),
      flush_columns_(static_cast<std::int64_t>(kCacheSizesRead * cache_bytes() / sizeof(float)) / kFlushRows),
      begin_(make_event(cudaEventDefault)),
      end_(make_event(cudaEventDefault)) {
  try {
    const std::size_t row_bytes = static_cast<std::size_t>(flush_columns_) * sizeof(float);
    sums_ = allocate_device(row_bytes);
    flush_ = allocate_device(kFlushRows * row_bytes);
    check(cudaMemsetAsync(flush_.get(), 0, kFlushRows * row_bytes, stream_));
  } catch (const Error& error) {
    if (error.code() != ExitCode::out_of_memory) throw;
    cudaGetLastError();
  }
  using HostClock = std::chrono::steady_clock;
  const auto start = HostClock::now();
  while (std::chrono::duration<double>(HostClock::now() - start).count() < kWarmUpSeconds)
    seconds_of_one([] {});
}

double ColdTimer::seconds(const std::function<void()>& enqueue, std::optional<double> best) const {
  seconds_of_one(enqueue);  // loads its kernels
  std::vector<double> runs{seconds_of_one(enqueue)};
  double sum = runs.front();
  if (best && sum > kHopeless * *best) return sum;
  while (std::ssize(runs) < kMinRuns || (std::ssize(runs) < kMaxRuns && sum < kEnoughSeconds)) {
    runs.push_back(seconds_of_one(enqueue));
    sum += runs.back();
  }
  const auto middle = runs.begin() + std::ssize(runs) / 2;
  std::nth_element(runs.begin(), middle, runs.end());
  return *middle;
}

double ColdTimer::seconds_of_one(const std::function<void()>& enqueue) const {
  if (flush_)
    launch_column_sums(DType::f32, flush_.get(), reinterpret_cast<float*>(sums_.get()), kFlushRows,
                       flush_columns_, stream_);
  check(cudaEventRecord(begin_.get(), stream_));
  enqueue();
  check(cudaEventRecord(end_.get(), stream_));
  check(cudaEventSynchronize(end_.get()));
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()));
  return 1e-3 * milliseconds;
}

std::optional<double> joules_of(const std::function<void()>& enqueue, double seconds,
                                const std::function<std::optional<double>()>& counter, cudaStream_t stream) {
  // The host waits, and reads the counter, once in so many runs.
  constexpr double kSecondsAtOnce = 0.005;
  const auto at_once = std::max<std::int64_t>(1, std::llround(kSecondsAtOnce / std::max(seconds, 1e-9)));
  std::int64_t runs = 0;
  // Runs for `least` seconds and until the counter moves; returns what it reads then.
  const auto run_for = [&](double least) {
    std::optional<double> before, now = counter();
    double ran = 0;
    runs = 0;
    do {
      before = now;
      for (std::int64_t i = 0; i < at_once; ++i, ++runs) enqueue();
      check(cudaStreamSynchronize(stream));
      now = counter();
      ran = static_cast<double>(runs) * seconds;
    } while (now && (ran < least || now == before) && ran < kMostEnergySeconds);
    return now == before ? std::nullopt : now;
  };
  const std::optional<double> begin = run_for(0);
  const std::optional<double> end = begin ? run_for(kEnergySeconds) : begin;
  if (!end) return {};
  return (*end - *begin) / static_cast<double>(runs);
}

}  // namespace plumb::cuda
