#include "kernels/cuda/plan/storage.h"

#include <algorithm>
#include <ranges>
#include <set>
#include <variant>

#include "kernels/cuda/plan/depthwise_shape.h"
#include "kernels/cuda/plan/margin_partition.h"
#include "kernels/cuda/plan/norm_partition.h"
#include "kernels/cuda/plan/state.h"
#include "kernels/cuda/plan/stem_shape.h"
#include "models/margin_head.h"

namespace plumb::cuda {
namespace {

constexpr std::size_t kConvWorkspaceLeast = std::size_t{32} << 20;
constexpr std::size_t kConvWorkspaceMost = std::size_t{256} << 20;
constexpr std::size_t kDenseWorkspace = std::size_t{32} << 20;  // cuBLASLt's recommendation for sm_90

bool has_stem(const Graph& graph) {
  return std::ranges::any_of(graph.ops, [&](const Op& op) {
    const Conv* conv = std::get_if<Conv>(&op);
    return conv && is_stem(graph, *conv);
  });
}

StorageTypes storage_types(const Graph& graph, Precision precision, const DeviceLimits& limits) {
  if (precision == Precision::fp32 || precision == Precision::tf32) return {.image_channels = 4};
  const DType half = precision == Precision::fp16 ? DType::f16 : DType::bf16;
  const bool has_own_stem = limits.compute_capability >= kStemComputeCapability && has_stem(graph);
  return {.activations = half, .weight_gradients = half, .image_channels = has_own_stem ? kStemChannels : 8};
}

std::set<ValueId> unstored_values(const Graph& graph, const std::vector<LayerFusion>& layers) {
  std::set<ValueId> unstored;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto* norm = std::get_if<FusedNorm>(&layers[i]);
    if (norm && norm->output != FusedNorm::Output::stored)
      unstored.insert(std::get<BatchNorm>(graph.ops[i]).out);
    if (std::holds_alternative<UnstoredConv>(layers[i])) unstored.insert(std::get<Conv>(graph.ops[i]).out);
  }
  return unstored;
}

void pad_input_channels(Lowering& lowering, const Conv& op, std::int64_t channels) {
  const ParameterBuffers& weight = lowering.tensors().parameters[op.weight];
  for (BufferId id : {weight.master, weight.momentum, weight.gradient}) {
    std::size_t& held = lowering.program.buffers[id].bytes;
    held = held / static_cast<std::size_t>(lowering.graph.values[op.in].shape.c) *
           static_cast<std::size_t>(channels);
  }
}

// Runs before copies are made; they inherit the layout.
void set_depthwise_layout(Lowering& lowering, const Conv& op) {
  const ParameterBuffers& weight = lowering.tensors().parameters[op.weight];
  for (BufferId id : {weight.master, weight.momentum, weight.gradient})
    if (id != kNone) lowering.program.buffers[id].layout = kDepthwiseLayout;
}

// The workspace of our own kernel for each operation; see own_workspace_bytes().
struct OwnWorkspace {
  const Graph& graph;
  const Program& program;
  const Instruction& instruction;

  std::size_t operator()(const BatchNormStatistics&) const { return NormWorkspace{}.bytes(partition()); }
  std::size_t operator()(const BatchNormApply& norm) const {
    return norm.out_sums ? norm_partials_bytes(partition(), 1) : 0;
  }
  std::size_t operator()(const BatchNormBackward& norm) const {
    return (norm.slope ? kPreluWorkspace : NormWorkspace{}).bytes(partition());
  }
  std::size_t operator()(const BatchNormPairBackward&) const { return kPairWorkspace.bytes(partition()); }
  std::size_t operator()(const BatchNormPoolBackward&) const { return NormWorkspace{}.bytes(partition()); }
  std::size_t operator()(const SamplePixels&) const { return norm_partials_bytes(partition(), 1); }
  std::size_t operator()(const MaskedGradient&) const { return norm_partials_bytes(partition(), 1); }
  std::size_t operator()(const ConvBackwardWeights& conv) const {
    if (!is_depthwise(graph, op<Conv>())) return 0;
    return depthwise_workspace_bytes(window_shape(graph, op<Conv>()), program.buffers[conv.in].dtype);
  }
  std::size_t operator()(const SoftmaxCrossEntropy&) const {
    return sizeof(RowLoss) * static_cast<std::size_t>(graph.values[op<SoftmaxLoss>().in].shape.n);
  }
  std::size_t operator()(const MarginSampleClasses&) const {
    const MarginSizes sizes = margin_sizes(graph, instruction.op);
    return sample_workspace_bytes(sizes.images, sizes.rows);
  }
  std::size_t operator()(const MarginStatistics& margin) const {
    const MarginSizes sizes = margin_sizes(graph, instruction.op);
    return statistics_workspace_bytes(sizes.images, sizes.rows, program.buffers[margin.products].dtype);
  }
  std::size_t operator()(const auto&) const { return 0; }

  template <typename T>
  const T& op() const {
    return std::get<T>(graph.ops[instruction.op]);
  }
  NormPartition partition() const { return norm_partition(graph, program, instruction); }
};

std::size_t library_workspace_limit(const Graph& graph, const Program& program,
                                    const Instruction& instruction) {
  const auto of_conv = [&](BufferId in, BufferId out) -> std::size_t {
    const auto& op = std::get<Conv>(graph.ops[instruction.op]);
    if (is_depthwise(graph, op)) return 0;
    const auto bytes = [&](BufferId id) { return program.buffers[id].bytes; };
    return std::clamp(bytes(in) + bytes(out) + 4 * bytes(program.tensors.parameters[op.weight].master),
                      kConvWorkspaceLeast, kConvWorkspaceMost);
  };
  if (const auto* conv = instruction.as<ConvForward>()) return of_conv(conv->in, conv->out);
  if (const auto* conv = instruction.as<ConvBackwardData>()) return of_conv(conv->d_in, conv->d_out);
  if (const auto* conv = instruction.as<ConvBackwardWeights>()) return of_conv(conv->in, conv->d_out);
  if (const auto* conv = instruction.as<ConvNormBackwardData>()) return of_conv(conv->norm_in, conv->d_out);
  const auto with_features = [&](BufferId rows) {  // rounded to the dtype of the centers' rows
    const MarginSizes sizes = margin_sizes(graph, instruction.op);
    return kMarginGemmWorkspace + rounded_bytes(sizes.images * sizes.embedding, program.buffers[rows].dtype);
  };
  if (const auto* margin = instruction.as<MarginProducts>()) return with_features(margin->rows);
  if (const auto* margin = instruction.as<MarginWeightGradient>()) return with_features(margin->rows);
  if (instruction.as<MarginFeatureProducts>()) return kMarginGemmWorkspace;
  return is_by_products(instruction) ||
                 instruction.is_one_of<DenseForward, DenseBackwardWeights, DenseBackwardData>()
             ? kDenseWorkspace
             : 0;
}

}  // namespace

Lowering start_storage(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits,
                       const std::vector<LayerFusion>& layers) {
  StorageTypes types = storage_types(graph, options.precision, limits);
  types.unstored = unstored_values(graph, layers);
  Lowering lowering = start_lowering(graph, types, sizeof(State));
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

NormPartition norm_partition(const Graph& graph, const Program& program, const Instruction& instruction) {
  const Op& op = graph.ops[instruction.op];
  if (const auto* gradient = instruction.as<MaskedGradient>()) {
    const std::vector<std::int64_t>& dims = program.buffers[gradient->d_out].dims;  // n, c, h, w
    return partition_norm(dims.at(0) * dims.at(2) * dims.at(3), dims.at(1));
  }
  if (instruction.as<SamplePixels>()) {
    Shape sampled = graph.values[std::get<Conv>(op).out].shape;
    sampled.c = graph.values[std::get<Conv>(op).in].shape.c;
    return partition_norm(sampled);
  }
  const Shape& in = graph.values[std::get<BatchNorm>(op).in].shape;
  if (instruction.as<BatchNormPoolBackward>()) return partition_pooled(in);
  const auto* apply = instruction.as<BatchNormApply>();
  return partition_norm(in, apply && apply->out_sums ? kNormBlocksAtOnce : kNormBlocks);
}

BufferId add_norm_counters(Program& program, const Graph& graph, const std::vector<LayerFusion>& layers) {
  std::int64_t counters = 0;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const auto* norm = std::get_if<BatchNorm>(&graph.ops[i]);
    if (!norm) continue;
    Shape in = graph.values[norm->in].shape;
    const auto count = [&](const Shape& shape) {
      counters = std::max(counters, norm_counters(partition_norm(shape)));
    };
    const auto& fused = std::get<FusedNorm>(layers[i]);
    if (!fused.is_by_product() || fused.masks_gradient()) count(in);
    if (fused.is_by_product())
      in.c = graph.values[std::get<Conv>(graph.ops[fused.conv]).in].shape.c, count(in);
    if (std::holds_alternative<FusedNorm::ThroughPool>(fused.backward))
      counters = std::max(counters, norm_counters(partition_pooled(in)));
  }
  if (counters == 0) return kNone;
  return add_buffer(program, {.name = "norm_counters",
                              .role = Role::state,
                              .dtype = DType::i32,
                              .dims = {counters},
                              .persistent = true});
}

bool is_by_products(const Instruction& instruction) {
  const auto* forward = instruction.as<BlockEndForward>();
  const auto* data = instruction.as<BlockEndBackwardData>();
  return instruction.as<ChannelProducts>() || (forward && forward->by_products) ||
         (data && data->by_products);
}

std::size_t own_workspace_bytes(const Graph& graph, const Program& program, const Instruction& instruction) {
  return std::visit(OwnWorkspace{graph, program, instruction}, instruction.operation);
}

void set_workspaces(const Graph& graph, Program& program) {
  for (Instruction& instruction : program.instructions) {
    const std::size_t own = own_workspace_bytes(graph, program, instruction);
    instruction.workspace_bytes = own > 0 ? own : library_workspace_limit(graph, program, instruction);
  }
}

}  // namespace plumb::cuda
