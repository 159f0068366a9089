// What the CUDA runtime stand-in refuses or shows: only streams and events order work, memory belongs to the
// GPU, and captures reject the same calls as CUDA.
#include <gpu_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
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

TEST(EmulatedStreams, NothingRunsBeforeSomebodyWaits) {
  const Stream stream = make_stream();
  const PinnedMemory host = allocate_pinned(sizeof(float));
  auto* value = reinterpret_cast<float*>(host.get());
  *value = 1;
  const Vectors v;
  check(cudaMemsetAsync(v.at(0), 0, 32 * sizeof(float), stream.get()));
  check(cudaMemcpyAsync(value, v.at(0), sizeof(float), cudaMemcpyDeviceToHost, stream.get()));
  EXPECT_EQ(*value, 1);
  check(cudaStreamSynchronize(stream.get()));
  EXPECT_EQ(*value, 0);
}

TEST(EmulatedStreams, APinnedSourceIsReadWhenTheCopyRuns) {
  const Stream stream = make_stream();
  const PinnedMemory host = allocate_pinned(sizeof(float));
  auto* value = reinterpret_cast<float*>(host.get());
  const Vectors v;
  *value = 1;
  check(cudaMemcpyAsync(v.at(0), value, sizeof(float), cudaMemcpyHostToDevice, stream.get()));
  *value = 2;  // too early: the copy hasn't run
  check(cudaStreamSynchronize(stream.get()));
  EXPECT_EQ(first_of(v.at(0)), 2);
}

TEST(EmulatedStreams, TimeBetweenEventsWantsBothToHaveHappened) {
  const Stream stream = make_stream();
  const Event begin = make_event(cudaEventDefault), end = make_event(cudaEventDefault),
              untimed = make_event();
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), cudaErrorInvalidResourceHandle);
  for (const Event* event : {&begin, &end, &untimed}) check(cudaEventRecord(event->get(), stream.get()));
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), cudaErrorNotReady);
  check(cudaStreamSynchronize(stream.get()));
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin.get(), untimed.get()), cudaErrorInvalidResourceHandle);
  check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
  EXPECT_GE(milliseconds, 0);
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

TEST(EmulatedMemory, CopiesThatLeaveTheirAllocationAreRefused) {
  const Vectors v;
  std::vector<float> host(200);
  EXPECT_EQ(cudaMemcpy(host.data(), v.at(0), 129 * sizeof(float), cudaMemcpyDeviceToHost),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), v.at(0), 4, cudaMemcpyHostToDevice), cudaErrorInvalidMemcpyDirection);
}

TEST(EmulatedMemoryDeathTest, TheHostCantReadIt) {
  const Vectors v;
  EXPECT_DEATH(std::fprintf(stderr, "%f", static_cast<double>(*v.at(0))), "");
}

TEST(EmulatedStreams, AKernelThatFailsFailsAllThatComesAfter) {
  // In a separate process: the GPU is lost afterwards.
  const auto fail = [] {
    const Stream stream = make_stream();
    gpu::launch(
        +[] {
          if (threadIdx.x == 0) __syncthreads();
        },
        1, 32, 0, stream.get());
    const cudaError_t status = cudaStreamSynchronize(stream.get());
    std::fprintf(stderr, "%s", cudaGetErrorString(status));
    std::_Exit(cudaDeviceSynchronize() == cudaErrorLaunchFailure ? 3 : 4);
  };
  EXPECT_EXIT(fail(), testing::ExitedWithCode(3), "1 of 32 threads wait");
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

TEST(EmulatedGraphs, AStreamThatDoesNotComeBackIsAnError) {
  const Stream stream = make_stream(), other = make_stream();
  const Event fork = make_event();
  const Vectors v;
  EXPECT_EQ(captured(stream.get(),
                     [&] {
                       check(cudaEventRecord(fork.get(), stream.get()));
                       check(cudaStreamWaitEvent(other.get(), fork.get(), 0));
                       check(cudaMemsetAsync(v.at(0), 0, 4, other.get()));
                     }),
            cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(cudaStreamSynchronize(other.get()), cudaSuccess) << "no longer captured";
}

TEST(EmulatedGraphs, WaitingForWhatIsOutsideIsAnError) {
  const Stream stream = make_stream(), other = make_stream();
  const Event outside = make_event();
  check(cudaEventRecord(outside.get(), other.get()));
  EXPECT_EQ(captured(stream.get(),
                     [&] {
                       EXPECT_EQ(cudaStreamWaitEvent(stream.get(), outside.get(), 0),
                                 cudaErrorStreamCaptureIsolation);
                     }),
            cudaErrorStreamCaptureInvalidated);
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

TEST(EmulatedGraphs, CopiesOfPageableMemoryCantBeCaptured) {
  const Stream stream = make_stream();
  const Vectors v;
  float host = 0;
  EXPECT_EQ(captured(stream.get(),
                     [&] {
                       EXPECT_EQ(cudaMemcpyAsync(v.at(0), &host, 4, cudaMemcpyHostToDevice, stream.get()),
                                 cudaErrorStreamCaptureUnsupported);
                     }),
            cudaErrorStreamCaptureInvalidated);
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
