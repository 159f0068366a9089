#include "kernels/cuda/plan/storage.h"

#include <algorithm>
#include <ranges>
#include <variant>

#include "base/error.h"
#include "kernels/cuda/plan/depthwise_shape.h"
#include "kernels/cuda/plan/margin_partition.h"
#include "kernels/cuda/plan/norm_partition.h"
#include "kernels/cuda/plan/state.h"
#include "kernels/cuda/plan/stem_shape.h"

namespace plumb::cuda {
namespace {

constexpr int kFirstWithoutWinograd = 90;  // compute capability
constexpr std::size_t kConvWorkspaceLeast = std::size_t{32} << 20;
constexpr std::size_t kConvWorkspaceMost = std::size_t{256} << 20;
constexpr std::size_t kDenseWorkspace = std::size_t{32} << 20;  // cuBLASLt's recommendation for sm_90
// Loss (f64), and whether the label is the largest or among the five largest (i32 each).
constexpr std::size_t kLossWorkspacePerImage = 16;

bool has_conv(const Graph& graph, const auto& is_wanted) {
  return std::ranges::any_of(graph.ops, [&](const Op& op) {
    const Conv* conv = std::get_if<Conv>(&op);
    return conv && is_wanted(graph, *conv);
  });
}

StorageTypes storage_types(const Graph& graph, Precision precision, TensorLayout layout,
                           const DeviceLimits& limits) {
  if (layout == TensorLayout::nchw) return {};
  if (precision == Precision::fp32 || precision == Precision::tf32) return {.image_channels = 4};
  const DType half = precision == Precision::fp16 ? DType::f16 : DType::bf16;
  const bool has_own_stem = limits.compute_capability >= kStemComputeCapability && has_conv(graph, is_stem);
  return {.activations = half, .weight_gradients = half, .image_channels = has_own_stem ? kStemChannels : 8};
}

void pad_input_channels(Lowering& lowering, const Conv& op, std::int64_t channels) {
  const ParameterBuffers& weight = lowering.tensors().parameters[op.weight];
  for (BufferId id : {weight.master, weight.momentum, weight.gradient}) {
    std::size_t& held = lowering.program.buffers[id].bytes;
    held = held / static_cast<std::size_t>(lowering.graph.values[op.in].shape.c) *
           static_cast<std::size_t>(channels);
  }
}

bool is_by_products(const auto* end) {
  return end && end->by_products;
}

// Runs before copies are made; they inherit the layout.
void set_depthwise_layout(Lowering& lowering, const Conv& op) {
  const ParameterBuffers& weight = lowering.tensors().parameters[op.weight];
  for (BufferId id : {weight.master, weight.momentum, weight.gradient})
    if (id != kNone) lowering.program.buffers[id].layout = kDepthwiseLayout;
}

}  // namespace

TensorLayout choose_layout(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits) {
  const bool possible = options.precision == Precision::fp32 && !has_conv(graph, is_depthwise);
  if (!options.layout)
    return possible && limits.compute_capability < kFirstWithoutWinograd ? TensorLayout::nchw
                                                                         : TensorLayout::nhwc;
  if (*options.layout == TensorLayout::nchw && !possible)
    throw Error(
        ExitCode::usage,
        "--layout nchw needs --fp32 and no depthwise convolutions, and this is {} in {}; leave it out",
        graph.model, name_of(options.precision));
  return *options.layout;
}

Lowering start_storage(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits) {
  const TensorLayout layout = choose_layout(graph, options, limits);
  const StorageTypes types = storage_types(graph, options.precision, layout, limits);
  Lowering lowering = start_lowering(graph, types, sizeof(State));
  lowering.program.layout = layout;
  if (options.fp32_head)
    std::ranges::fill(lowering.op_types | std::views::drop(graph.head_begin), DType::f32);
  for (const Op& op : graph.ops) {
    const Conv* conv = std::get_if<Conv>(&op);
    if (conv && is_depthwise(graph, *conv))
      set_depthwise_layout(lowering, *conv);
    else if (conv && conv->in == 0)
      pad_input_channels(lowering, *conv, types.image_channels);
  }
  store_in_op_types(lowering, types.weight_gradients);
  return lowering;
}

BufferId add_norm_counters(Program& program, const Graph& graph, const std::vector<LayerFusion>& layers) {
  std::int64_t counters = 1;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const auto* norm = std::get_if<BatchNorm>(&graph.ops[i]);
    if (!norm) continue;
    Shape in = graph.values[norm->in].shape;
    const auto count = [&](const Shape& shape) {
      counters = std::max(counters, norm_counters(partition_norm(shape, program.layout.value())));
    };
    const auto& fused = std::get<FusedNorm>(layers[i].how);
    if (!fused.is_by_product() || fused.masks_gradient()) count(in);
    if (fused.is_by_product())
      in.c = graph.values[std::get<Conv>(graph.ops[fused.conv]).in].shape.c, count(in);
    if (std::holds_alternative<FusedNorm::ThroughPool>(fused.backward))
      counters = std::max(counters, norm_counters(partition_pooled(in)));
  }
  return add_buffer(program, {.name = "norm_counters",
                              .role = Role::state,
                              .dtype = DType::i32,
                              .dims = {counters},
                              .persistent = true});
}

std::size_t conv_workspace_bytes(const Graph& graph, const Conv& op, bool of_weights, const Buffer& in,
                                 const Buffer& out, const Buffer& weight) {
  if (!is_depthwise(graph, op))
    return std::clamp(in.bytes + out.bytes + 4 * weight.bytes, kConvWorkspaceLeast, kConvWorkspaceMost);
  if (!of_weights) return 0;
  return depthwise_workspace_bytes(window_shape(graph, op), in.dtype);
}

void set_library_workspaces(Program& program, std::int64_t images) {
  for (Instruction& instruction : program.instructions)
    if (instruction.as<SoftmaxCrossEntropy>())
      instruction.workspace_bytes = kLossWorkspacePerImage * static_cast<std::size_t>(images);
    else if (instruction.as<DenseForward>() || instruction.as<DenseBackwardWeights>() ||
             instruction.as<DenseBackwardData>() || instruction.as<ChannelProducts>() ||
             is_by_products(instruction.as<BlockEndForward>()) ||
             is_by_products(instruction.as<BlockEndBackwardData>()))
      instruction.workspace_bytes = kDenseWorkspace;
}

void set_margin_workspaces(Program& program, std::size_t first_instruction, std::int64_t images_of_all_ranks,
                           const Buffer& rows) {
  const std::size_t copy = rounded_bytes(images_of_all_ranks * rows.dims[1], rows.dtype);
  for (std::size_t i = first_instruction; i < program.instructions.size(); ++i) {
    Instruction& instruction = program.instructions[i];
    if (instruction.as<MarginSampleClasses>())
      instruction.workspace_bytes = sample_workspace_bytes(images_of_all_ranks, rows.dims[0]);
    else if (instruction.as<MarginStatistics>())
      instruction.workspace_bytes = statistics_workspace_bytes(images_of_all_ranks, rows.dims[0], rows.dtype);
    else if (instruction.as<MarginProducts>() || instruction.as<MarginWeightGradient>())
      instruction.workspace_bytes = copy + kMarginGemmWorkspace;
    else if (instruction.as<MarginFeatureProducts>())
      instruction.workspace_bytes = kMarginGemmWorkspace;
  }
}

}  // namespace plumb::cuda
