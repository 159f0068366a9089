// ColdTimer and fill_operands() of instruction_tuner.h.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/cuda/instruction_tuner.h"
#include "kernels/cuda/own/elementwise.h"

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

constexpr std::size_t kTileBytes = 1 << 20;

// The bits of 0.5, and which bits are random.
std::vector<std::uint16_t> random_words(std::uint16_t half, std::uint16_t random_bits) {
  std::mt19937 random;
  std::vector<std::uint16_t> words(kTileBytes / sizeof(std::uint16_t));
  for (std::uint16_t& word : words) word = static_cast<std::uint16_t>(half | (random() & random_bits));
  return words;
}

void fill(std::byte* memory, std::size_t bytes, const std::vector<std::uint16_t>& words,
          cudaStream_t stream) {
  std::size_t filled = std::min(bytes, kTileBytes);
  check(cudaMemcpyAsync(memory, words.data(), filled, cudaMemcpyHostToDevice, stream));
  while (filled < bytes) {
    const std::size_t more = std::min(filled, bytes - filled);
    check(cudaMemcpyAsync(memory + filled, memory, more, cudaMemcpyDeviceToDevice, stream));
    filled += more;
  }
}

}  // namespace

ColdTimer::ColdTimer(cudaStream_t stream)
    : stream_(stream),
      flush_columns_(static_cast<std::int64_t>(kCacheSizesRead * cache_bytes() / sizeof(float)) / kFlushRows),
      begin_(make_event(cudaEventDefault)),
      end_(make_event(cudaEventDefault)) {
  const std::size_t row_bytes = static_cast<std::size_t>(flush_columns_) * sizeof(float);
  sums_ = allocate_device(row_bytes);
  flush_ = allocate_device(kFlushRows * row_bytes);
  check(cudaMemsetAsync(flush_.get(), 0, kFlushRows * row_bytes, stream_));
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

void fill_operands(const Program& program, const Instruction& instruction, const Arena& arena,
                   cudaStream_t stream) {
  // Read as f32, two of bf16 are in [0.5, 1) again.
  static const std::vector<std::uint16_t> kF16 = random_words(0x3800, 0x83ff),
                                          kBf16 = random_words(0x3f00, 0x807f);
  for (const BufferUse& use : instruction.uses()) {
    const Buffer& buffer = program.buffers[use.buffer];
    std::byte* const data = arena.data(use.buffer);
    if (buffer.role == Role::state)  // counters of norms count from zero
      check(cudaMemsetAsync(data, 0, buffer.bytes, stream));
    else
      fill(data, buffer.bytes, buffer.dtype == DType::bf16 || buffer.dtype == DType::f32 ? kBf16 : kF16,
           stream);
  }
}

}  // namespace plumb::cuda
