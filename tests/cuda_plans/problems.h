// The convolutions of ResNet-50 and of the backbones of faces as the CUDA device's Programs ask for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absent_gpu.h"
#include "kernels/cuda/conv.h"
#include "kernels/describe.h"

namespace plumb::cuda {

struct WantedPlan {
  ConvProblem problem;
  std::size_t workspace_limit = 0;
  std::string instruction;  // the first that wants it
};

inline constexpr std::int64_t kBatch = 128;

// A network on images of one size: "resnet50", "r50", "r100" or "y1".
struct Workload {
  std::string model;
  std::int64_t image_size = 224;
};
// What the GPU check and the README's commands train: ResNet-50 at 32, 64 and 224 pixels, faces at 112.
std::vector<Workload> workloads();
Graph make_graph(const Workload& workload, std::int64_t batch);
DescribeOptions describe_options(const Workload& workload, Precision precision, bool fuse);

// What the instructions of a Graph ask for, each problem once, in the order of the instructions. Depthwise
// convolutions are kernels of our own and ask for nothing.
std::vector<WantedPlan> wanted_plans(const Graph& graph, const DeviceLimits& gpu,
                                     const DescribeOptions& options);
// Of ResNet-50 at 224 pixels and batch kBatch.
std::vector<WantedPlan> wanted_plans(const DeviceLimits& gpu, const DescribeOptions& options);

// The largest batch whose memory plan fits, as a dry run reports it, but no more than the device takes.
std::int64_t largest_batch(const Workload& workload, const DeviceLimits& gpu, const DescribeOptions& options);

// The product's engine for a GPU that isn't there.
std::unique_ptr<ConvEngine> engine_for(const AbsentGpu& gpu, bool deterministic = true);

struct Planned {
  bool built = false;
  std::string text;  // the engine, or why there is none
  std::size_t workspace_bytes = 0;
};
Planned plan_of(ConvEngine& engine, const ConvProblem& problem, std::size_t workspace_limit);
// … and prints what came of it.
Planned try_plan(ConvEngine& engine, const ConvProblem& problem, std::size_t workspace_limit);

// "sm_80_fp16": what a test of a GPU and a precision is called.
std::string test_name(const AbsentGpu& gpu, Precision precision);

}  // namespace plumb::cuda
