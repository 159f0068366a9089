// The emulated GPU itself: barriers, warp exchanges, atomics, and messages about misuse.
#include <gpu_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"

namespace plumb::gpu {
namespace {

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

__global__ void count_places(int* counts, int threads) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  counts[block * threads + thread] += 1;
}

TEST(EmulatedKernels, EveryThreadOfEveryBlockRunsOnce) {
  std::vector<int> counts(2 * 3 * 5 * 7 * 4 * 3);
  launch(count_places, dim3(2, 3, 5), dim3(7, 4, 3), 0, nullptr, counts.data(), 7 * 4 * 3);
  EXPECT_EQ(counts, std::vector<int>(counts.size(), 1));
}

__global__ void reverse(const int* in, int* out) {
  int* held = dynamic_shared<int>();
  held[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}

TEST(EmulatedKernels, ABarrierShowsWhatAllThreadsWrote) {
  std::vector<int> in(3 * 200), out(3 * 200);
  std::iota(in.begin(), in.end(), 0);
  launch(reverse, 3, 200, 200 * sizeof(int), nullptr, in.data(), out.data());
  for (int i = 0; i < 200; ++i) EXPECT_EQ(out[400 + i], 599 - i);
}

__global__ void reverse_without_barrier(const int* in, int* out) {
  int* held = dynamic_shared<int>();
  held[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}

TEST(EmulatedKernels, AMissingBarrierShows) {
  std::vector<int> in(64, 5), out(64);
  launch(reverse_without_barrier, 1, 64, 64 * sizeof(int), nullptr, in.data(), out.data());
  EXPECT_NE(std::count(out.begin(), out.end(), -1), 0) << "shared memory begins as if never written";
}

__global__ void votes(int* out) {
  const unsigned thread = threadIdx.x;
  out[4 * thread] = static_cast<int>(__ballot_sync(~0U, thread % 3 == 0));
  out[4 * thread + 1] = __any_sync(~0U, thread == 33);
  out[4 * thread + 2] = __all_sync(~0U, thread < 32);
  out[4 * thread + 3] = __syncthreads_count(thread % 2);
}

TEST(EmulatedKernels, VotesAndCounts) {
  std::vector<int> out(4 * 64);
  launch(votes, 1, 64, 0, nullptr, out.data());
  unsigned thirds = 0, thirds_of_second_warp = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    thirds |= lane % 3 == 0 ? 1U << lane : 0;
    thirds_of_second_warp |= (lane + 32) % 3 == 0 ? 1U << lane : 0;
  }
  for (std::size_t thread = 0; thread < 64; ++thread) {
    const bool first_warp = thread < 32;
    EXPECT_EQ(static_cast<unsigned>(out[4 * thread]), first_warp ? thirds : thirds_of_second_warp);
    EXPECT_EQ(out[4 * thread + 1], first_warp ? 0 : 1);
    EXPECT_EQ(out[4 * thread + 2], first_warp ? 1 : 0);
    EXPECT_EQ(out[4 * thread + 3], 32);
  }
}

__global__ void shuffles(float* out) {
  const auto value = static_cast<float>(threadIdx.x);
  float* mine = out + 5 * threadIdx.x;
  mine[0] = __shfl_sync(~0U, value, 7);
  mine[1] = __shfl_xor_sync(~0U, value, 16);
  mine[2] = __shfl_down_sync(~0U, value, 4);
  mine[3] = __shfl_up_sync(~0U, value, 4);
  mine[4] = __shfl_down_sync(~0U, value, 1, 8);
}

TEST(EmulatedKernels, ShufflesTakeWhatTheSourceBrought) {
  std::vector<float> out(5 * 96);
  launch(shuffles, 1, 96, 0, nullptr, out.data());
  for (int thread = 0; thread < 96; ++thread) {
    const int warp = thread / 32 * 32, lane = thread % 32;
    const float* taken = &out[static_cast<std::size_t>(5 * thread)];
    EXPECT_EQ(taken[0], warp + 7);
    EXPECT_EQ(taken[1], warp + (lane ^ 16));
    EXPECT_EQ(taken[2], lane + 4 < 32 ? thread + 4 : thread);
    EXPECT_EQ(taken[3], lane >= 4 ? thread - 4 : thread);
    EXPECT_EQ(taken[4], lane % 8 < 7 ? thread + 1 : thread);
  }
}

__global__ void halves_of_a_warp(float* out) {
  const unsigned mask = threadIdx.x < 16 ? 0xFFFFU : 0xFFFF0000U;
  float value = 1;
  const int rounds = threadIdx.x < 16 ? 2 : 4;  // the halves of the warp never meet
  for (int i = 0; i < rounds; ++i) value += __shfl_xor_sync(mask, value, 1 << i);
  out[threadIdx.x] = value;
}

TEST(EmulatedKernels, PartsOfAWarpExchangeByThemselves) {
  std::vector<float> out(32);
  launch(halves_of_a_warp, 1, 32, 0, nullptr, out.data());
  EXPECT_EQ(out[3], 4);
  EXPECT_EQ(out[20], 16);
}

__global__ void ask_absent_lane(float* out) {
  out[threadIdx.x] = __shfl_xor_sync(~0U, 1.0F, 16);
}

TEST(EmulatedKernels, ALaneThatIsNotThereGivesNaN) {
  std::vector<float> out(20);
  launch(ask_absent_lane, 1, 20, 0, nullptr, out.data());
  EXPECT_EQ(out[0], 1);
  EXPECT_TRUE(std::isnan(out[7]));
}

__global__ void atomics(unsigned* counts, float* sum, unsigned long long* largest) {
  atomicAdd(sum, 0.5F);
  atomicInc(&counts[0], 9);
  atomicOr(&counts[1], 1U << threadIdx.x % 32);
  atomicMax(largest, 1ULL * threadIdx.x);
  unsigned seen = counts[2];
  while (const unsigned old = atomicCAS(&counts[2], seen, seen + 2)) {
    if (old == seen) break;
    seen = old;
  }
}

TEST(EmulatedKernels, AtomicsAddUp) {
  std::vector<unsigned> counts{0, 0, 1};
  float sum = 0;
  unsigned long long largest = 0;
  launch(atomics, 2, 64, 0, nullptr, counts.data(), &sum, &largest);
  EXPECT_EQ(sum, 64);
  EXPECT_EQ(counts, (std::vector<unsigned>{128 % 10, ~0U, 257}));
  EXPECT_EQ(largest, 63);
}

__global__ void some_skip_the_barrier(unsigned first) {
  if (threadIdx.x >= first) __syncthreads();
}

TEST(EmulatedKernels, ABarrierThatSomeSkipIsToldWithItsPlace) {
  const std::string told = message_of([] { launch(some_skip_the_barrier, 1, 100, 0, nullptr, 3U); });
  EXPECT_NE(told.find("97 of 100 threads wait at emulated_kernels_test.cpp:"), std::string::npos) << told;
  EXPECT_NO_THROW(launch(some_skip_the_barrier, 1, 100, 0, nullptr, 0U)) << "the next kernel runs again";
}

__global__ void one_lane_skips_the_shuffle() {
  if (threadIdx.x == 3)
    __syncthreads();
  else
    __shfl_sync(~0U, 1, 0);
}

TEST(EmulatedKernels, AShuffleThatALaneSkipsIsTold) {
  const std::string told = message_of([] { launch(one_lane_skips_the_shuffle, 1, 32, 0, nullptr); });
  EXPECT_NE(told.find("for lanes of its mask that never come"), std::string::npos) << told;
}

__global__ void nothing() {}

TEST(EmulatedKernels, ShapesThatAGpuRefusesAreRefused) {
  EXPECT_THROW(launch(nothing, 1, 1025, 0, nullptr), Error);
  EXPECT_THROW(launch(nothing, 0, 32, 0, nullptr), Error);
  EXPECT_THROW(launch(nothing, dim3(1, 65536), 32, 0, nullptr), Error);
  EXPECT_THROW(launch(nothing, 1, 32, 228 * 1024, nullptr), Error);
}

TEST(EmulatedKernels, IntegerFunctionsAgreeWithTheirDefinition) {
  EXPECT_EQ(__umulhi(0xDEADBEEFU, 0x12345678U), 0xFD5BDEEU);
  EXPECT_EQ(__umul64hi(~0ULL, ~0ULL), ~0ULL - 1);
  EXPECT_EQ(__brev(0x80000001U), 0x80000001U);
  EXPECT_EQ(__brev(6U), 0x60000000U);
  EXPECT_EQ(__clz(1), 31);
  EXPECT_EQ(__ffs(8), 4);
  EXPECT_EQ(__popc(0xF0F0U), 8);
}

}  // namespace
}  // namespace plumb::gpu
