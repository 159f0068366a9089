// What the emulated GPU shows or says where a GPU would compute something undefined; what it computes is what
// tests/conformance compares.
#include <gpu_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
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

__global__ void ask_absent_lane(float* out) {
  out[threadIdx.x] = __shfl_xor_sync(~0U, 1.0F, 16);
}

TEST(EmulatedKernels, ALaneThatIsNotThereGivesNaN) {
  std::vector<float> out(20);
  launch(ask_absent_lane, 1, 20, 0, nullptr, out.data());
  EXPECT_EQ(out[0], 1);
  EXPECT_TRUE(std::isnan(out[7]));
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

}  // namespace
}  // namespace plumb::gpu
