// describe(Graph, …) -> Program: the instructions that train a Graph on a device with given limits. Pure:
// needs neither a device nor vendor headers; dry runs and real runs share it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/program/program.h"
#include "kernels/program/targets.h"
#include "models/graph.h"

namespace plumb {

// Patterns that a GPU's fused engines cover (kernels/cuda/plan/fusion.h).
enum class FusedPattern {
  statistics,
  normalized_input,
  norm_backward_data,
  block_end_gradient,
  block_end_sums,
  product_norm,
  product_shortcut
};
std::string_view name_of(FusedPattern pattern);

// A convolution that runs unfused although the GPU has a fused engine for it.
struct PlainLayer {
  std::size_t op = 0;  // index into Graph::ops
  FusedPattern pattern = FusedPattern::statistics;
  std::string reason;  // for users: "cuDNN has no engine", "plain instructions are 0.03 ms faster"
};

// Which convolutions run by Winograd's algorithm, of those that a CPU has it for
// (kernels/program/winograd.h).
enum class Winograd { never, where_faster, everywhere };

struct DescribeOptions {
  Precision precision = Precision::fp32;
  bool load_batch_every_step = false;  // real images: load_batch on the input lane, then pack_batch
  Normalization normalization = {};    // of these images
  bool fuse = true;                    // cuda: use fused engines if the device has them
  bool deterministic = false;          // cuda: only engines that sum in a fixed order
  bool scale_loss = false;        // fp16: check gradients for overflow, and skip the update if one overflowed
  bool fp32_head = false;         // fp16, bf16: run operations from Graph::head_begin on in fp32
  bool tf32_head = false;         // cuda, with fp32_head: their products round inputs to TF32
  std::vector<PlainLayer> plain;  // exceptions to `fuse`
  Winograd winograd = Winograd::where_faster;  // cpu
};

// Throws Error(usage) naming the supported precisions if the device lacks this one.
Program describe(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits);

namespace cpu {
Program describe(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits);
}
namespace cuda {
Program describe(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits);
}  // namespace cuda

}  // namespace plumb
