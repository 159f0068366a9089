// describe(Graph, …) -> Program: which steps train this Graph on a device with these limits. Pure: needs no
// device and no vendor's header; the same code serves a dry run and the real run.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/program.h"
#include "kernels/targets.h"
#include "models/graph.h"

namespace plumb {

// What a fused engine of a GPU takes over (kernels/cuda/fusion.h).
enum class FusedPattern { statistics, normalized_input, residual_input, norm_backward_data };
std::string_view name_of(FusedPattern pattern);

// A convolution that runs as plain steps although its GPU has the fused engine.
struct PlainLayer {
  std::size_t op = 0;  // index into Graph::ops
  FusedPattern pattern = FusedPattern::statistics;
  std::string reason;  // for people: "cuDNN has no engine", "plain steps are 0.03 ms faster"
};

struct DescribeOptions {
  Precision precision = Precision::fp32;
  bool load_batch_every_step = false;  // real images: a load_batch step on the input lane
  bool fuse = true;                    // cuda: cuDNN's fused engines where the device has them
  bool deterministic = false;          // cuda: no engine that sums in any order
  bool scale_loss = false;             // fp16: look for overflows, and skip the step where there is one
  bool fp32_head = false;              // fp16, bf16: operations from Graph::head_begin on in fp32
  std::vector<PlainLayer> plain;       // exceptions to `fuse`
};

// Throws Error(usage) if the device lacks the precision, naming those it has.
Program describe(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits);

// For people: which passes fused engines save, layer by layer, and why not more. Empty on a cpu.
std::string fusion_text(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits);

namespace cpu {
Program describe(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits);
}
namespace cuda {
Program describe(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits);
std::string fusion_text(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits);
}  // namespace cuda

}  // namespace plumb
