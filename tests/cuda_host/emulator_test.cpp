// What the emulated GPU shows or refuses where a GPU would compute something undefined: the other tests rely
// on it.
#include <gpu_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/runtime/runtime.h"
#include "tests/cuda_host/runtime_state.h"

namespace plumb::cuda {
namespace {

__global__ void add(float* out, const float* in, float more) {
  out[threadIdx.x] = in[threadIdx.x] + more;
}

struct Vectors {
  DeviceMemory memory = allocate_device(4 * 32 * sizeof(float));
  float* at(int i) const { return reinterpret_cast<float*>(memory.get()) + 32 * i; }
};

float first_of(const float* device) {
  float value = 0;
  check(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

__global__ void reverse(int* out, bool waits) {
  int* held = gpu::dynamic_shared<int>();
  held[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (waits && threadIdx.x < 60) __syncthreads();
  out[threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}

TEST(EmulatedKernels, AMissingBarrierShows) {
  std::vector<int> out(64);
  gpu::launch(reverse, 1, 64, 64 * sizeof(int), nullptr, out.data(), false);
  EXPECT_NE(std::ranges::count(out, -1), 0) << "shared memory begins as if never written";
  try {
    gpu::launch(reverse, 1, 64, 64 * sizeof(int), nullptr, out.data(), true);
    FAIL() << "a barrier that some skip";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("60 of 64 threads wait at emulator_test.cpp:"),
              std::string::npos)
        << error.what();
  }
}

TEST(EmulatedStreams, AMissingEventShows) {
  int wrong = 0;
  for (int i = 0; i < 50; ++i) {
    const Stream writer = make_stream(), reader = make_stream();
    const Vectors v;
    check(cudaMemsetAsync(v.at(0), 0, 32 * sizeof(float), writer.get()));
    for (int k = 0; k < 5; ++k) gpu::launch(add, 1, 32, 0, writer.get(), v.at(0), v.at(0), 1.0F);
    gpu::launch(add, 1, 32, 0, reader.get(), v.at(1), v.at(0), 10.0F);
    check(cudaStreamSynchronize(reader.get()));
    wrong += first_of(v.at(1)) != 15;
    check(cudaDeviceSynchronize());
  }
  EXPECT_GT(wrong, 20);
}

TEST(EmulatedMemory, NewMemoryIsNaN) {
  const Vectors v;
  EXPECT_TRUE(std::isnan(first_of(v.at(2))));
}

TEST(CauseOfFailure, IsMemoryWhereNextToNoneIsLeft) {
  EXPECT_EQ(cause_of_failure(), ExitCode::internal);
  EXPECT_EQ(cause_of_failure(std::size_t{1} << 30), ExitCode::internal);
  EXPECT_EQ(cause_of_failure(std::size_t{1} << 20), ExitCode::out_of_memory);
  EXPECT_EQ(remedy_for(ExitCode::internal), "");
  EXPECT_NE(remedy_for(ExitCode::out_of_memory).find("--bs"), std::string::npos);
}

TEST(EmulatedMemoryDeathTest, TheHostCantReadIt) {
  const Vectors v;
  EXPECT_DEATH(std::fprintf(stderr, "%f", static_cast<double>(*v.at(0))), "");
}

// Captures the work `body` enqueues on a stream; returns how the capture ended.
cudaError_t captured(cudaStream_t stream, const std::function<void()>& body) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  body();
  cudaGraph_t graph = nullptr;
  const cudaError_t status = cudaStreamEndCapture(stream, &graph);
  const CapturedGraph owned(graph);
  return status;
}

TEST(EmulatedGraphs, TheHostCantWaitWithinACapture) {
  const Stream stream = make_stream();
  const Event event = make_event();
  const std::vector<std::pair<std::function<cudaError_t()>, cudaError_t>> calls{
      {[&] { return cudaStreamSynchronize(stream.get()); }, cudaErrorStreamCaptureUnsupported},
      {[&] { return cudaStreamQuery(stream.get()); }, cudaErrorStreamCaptureUnsupported},
      {[] { return cudaDeviceSynchronize(); }, cudaErrorStreamCaptureUnsupported},
      {[&] { return cudaEventSynchronize(event.get()); }, cudaErrorCapturedEvent},
      {[&] { return cudaEventQuery(event.get()); }, cudaErrorCapturedEvent},
      {[] { return cudaStreamSynchronize(nullptr); }, cudaErrorStreamCaptureImplicit},
      {[] {
         void* memory = nullptr;
         return cudaMalloc(&memory, 64);
       },
       cudaErrorStreamCaptureUnsupported}};
  for (const auto& [call, expected] : calls) {
    EXPECT_EQ(captured(stream.get(),
                       [&, &forbidden = call, &answer = expected] {
                         check(cudaEventRecord(event.get(), stream.get()));
                         EXPECT_EQ(forbidden(), answer);
                       }),
              cudaErrorStreamCaptureInvalidated);
  }
}

TEST(EmulatedStreams, WhatIsGivenBackIsNoLeak) {
  EXPECT_EQ(gpu::emulated::leaks(), "");
  {
    const Stream stream = make_stream();
    EXPECT_EQ(gpu::emulated::leaks(), "1 streams");
  }
  EXPECT_EQ(gpu::emulated::leaks(), "");
}

}  // namespace
}  // namespace plumb::cuda
