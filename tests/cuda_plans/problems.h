// The convolutions of ResNet-50 and of the backbones of faces as the CUDA device's Programs ask for them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absent_gpu.h"
#include "kernels/cuda/conv.h"
#include "kernels/describe.h"

namespace plumb::cuda {

struct WantedPlan {
  ConvProblem problem;
  std::size_t workspace_limit = 0;
  std::string step;  // the first that wants it
};

inline constexpr std::int64_t kBatch = 128;

// What the steps of a batch of kBatch want, each problem once, in the order of the steps: those of ResNet-50,
// and those of r50, r100 and y1 but for depthwise convolutions, which no engine is asked for.
std::vector<WantedPlan> wanted_plans(const DeviceLimits& gpu, const DescribeOptions& options);
std::vector<WantedPlan> wanted_face_plans(const DeviceLimits& gpu, const DescribeOptions& options);

struct Planned {
  bool built = false;
  std::string text;  // the engine, or why there is none
  std::size_t workspace_bytes = 0;
};
// Asks for a plan, and prints what came of it.
Planned try_plan(ConvEngine& engine, const ConvProblem& problem, std::size_t workspace_limit);

// "sm_80_fp16": what a test of a GPU and a precision is called.
std::string test_name(const AbsentGpu& gpu, Precision precision);

}  // namespace plumb::cuda
