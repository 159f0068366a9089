// ResNet-50's Program on a GPU, with all fused engines or without some, and questions about its instructions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/plan/fusion.h"
#include "models/resnet50.h"
#include "tests/kernels/described_instructions.h"

namespace plumb::cuda {

using Operands = std::vector<std::string>;

inline DeviceLimits gpu(int compute_capability) {
  DeviceLimits limits = *find_target("h200");
  limits.compute_capability = compute_capability;
  return limits;
}

inline Program resnet50(int compute_capability, bool fuse = true, std::int64_t batch = 2,
                        std::int64_t image_size = 64, bool deterministic = false) {
  return plumb::describe(make_resnet50({.batch = batch, .image_size = image_size}),
                         {.precision = Precision::fp16, .fuse = fuse, .deterministic = deterministic},
                         gpu(compute_capability));
}

inline Program resnet50_without(const std::vector<FusedPattern>& patterns, int compute_capability,
                                std::int64_t batch, std::int64_t image_size) {
  const Graph graph = make_resnet50({.batch = batch, .image_size = image_size});
  DescribeOptions options{.precision = Precision::fp16};
  for (std::size_t op = 0; op < graph.ops.size(); ++op)
    for (const FusedPattern pattern : patterns) options.plain.push_back({op, pattern, "to compare"});
  return plumb::describe(graph, options, gpu(compute_capability));
}
// Without completed gradients, with outputs of all convolutions.
inline Program with_plain_ends(int compute_capability, std::int64_t batch = 2, std::int64_t image_size = 64) {
  return resnet50_without({FusedPattern::block_end_gradient, FusedPattern::product_norm}, compute_capability,
                          batch, image_size);
}
// With completed gradients that norms sum themselves.
inline Program with_plain_sums(int compute_capability, std::int64_t batch = 2, std::int64_t image_size = 64) {
  return resnet50_without({FusedPattern::block_end_sums, FusedPattern::product_norm}, compute_capability,
                          batch, image_size);
}

// With the outputs of the convolutions that end blocks.
inline Program with_stored_outputs(int compute_capability, std::int64_t batch = 2,
                                   std::int64_t image_size = 64) {
  return resnet50_without({FusedPattern::product_norm}, compute_capability, batch, image_size);
}

// With the outputs of the convolutions in shortcuts.
inline Program with_stored_shortcuts(int compute_capability) {
  return resnet50_without({FusedPattern::product_shortcut}, compute_capability, 2, 64);
}

inline bool has_instruction(const Program& program, const std::string& name) {
  return std::any_of(program.instructions.begin(), program.instructions.end(),
                     [&](const Instruction& instruction) { return instruction.name == name; });
}
inline bool has_buffer(const Program& program, const std::string& name) {
  return std::any_of(program.buffers.begin(), program.buffers.end(),
                     [&](const Buffer& buffer) { return buffer.name == name; });
}

}  // namespace plumb::cuda
