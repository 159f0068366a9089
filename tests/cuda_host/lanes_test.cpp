// Lanes of the CUDA device: priorities in a capture, and shutdown after a failure.
#include "kernels/cuda/runtime/lanes.h"

#include <gpu_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace plumb::cuda {
namespace {

__global__ void do_nothing() {}
__global__ void fail() {
  if (threadIdx.x == 0) __syncthreads();
}

// A graph without this flag runs entirely at the priority of the stream it is launched on.
TEST(Lanes, KeepTheirPrioritiesInACapture) {
  Lanes lanes;
  const ExecutableGraph graph =
      lanes.capture([&] { gpu::launch(do_nothing, 1, 32, 0, lanes.stream(Lane::compute)); });
  unsigned long long flags = 0;
  check(cudaGraphExecGetFlags(graph.get(), &flags));
  EXPECT_NE(flags & cudaGraphInstantiateFlagUseNodePriority, 0);
}

TEST(Lanes, DrainAfterAFailureWithoutTellingItAgain) {
  const auto drain_after_failure = [] {
    const Lanes lanes;
    gpu::launch(fail, 1, 32, 0, lanes.stream(Lane::compute));
    lanes.drain();
    std::_Exit(cudaStreamQuery(lanes.stream(Lane::compute)) == cudaErrorLaunchFailure ? 3 : 4);
  };
  EXPECT_EXIT(drain_after_failure(), testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace plumb::cuda
