// The convolutions of ResNet-50 and the face backbones, as posed by the CUDA device's Programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absent_gpu.h"
#include "kernels/cuda/vendors/conv.h"
#include "kernels/program/describe.h"

namespace plumb::cuda {

struct WantedPlan {
  ConvProblem problem;
  std::size_t workspace_limit = 0;
  std::string instruction;  // the first that poses it
};

inline constexpr std::int64_t kBatch = 128;

// A network at one image size: "resnet50", "r50", "r100" or "y1".
struct Workload {
  std::string model;
  std::int64_t image_size = 224;
};
Graph make_graph(const Workload& workload, std::int64_t batch);
DescribeOptions describe_options(const Workload& workload, Precision precision, bool fuse);

// Problems posed by a Graph's instructions, each once, in instruction order. Depthwise convolutions use our
// own kernels and pose none.
std::vector<WantedPlan> wanted_plans(const Graph& graph, const DeviceLimits& gpu,
                                     const DescribeOptions& options);
// ResNet-50 at 224 pixels and batch kBatch.
std::vector<WantedPlan> wanted_plans(const DeviceLimits& gpu, const DescribeOptions& options);

// The largest batch whose memory plan fits, as in a dry run, within the device's limit.
std::int64_t largest_batch(const Workload& workload, const DeviceLimits& gpu, const DescribeOptions& options);

// The program's convolution engine, for an absent GPU.
ConvEngine engine_for(const AbsentGpu& gpu, bool deterministic = true);

struct Planned {
  bool built = false;
  std::string text;  // the engine, or why there is none
  std::size_t workspace_bytes = 0;
};
Planned plan_of(const ConvEngine& engine, const ConvProblem& problem, std::size_t workspace_limit);
// The same, and prints the result.
Planned try_plan(const ConvEngine& engine, const ConvProblem& problem, std::size_t workspace_limit);

// "sm_80_fp16": test name of a GPU and precision.
std::string test_name(const AbsentGpu& gpu, Precision precision);

}  // namespace plumb::cuda
