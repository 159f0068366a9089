#include "kernels/cuda/own/norm.h"

#include <optional>

#include "kernels/cuda/binding.h"
#include "kernels/cuda/plan/storage.h"

namespace plumb::cuda {
namespace {

NormPartition partition_of(const Context& context, const Instruction& instruction) {
  return norm_partition(context.graph, context.program, instruction);
}
// Row `row` of the workspace: coefficients, with a PReLU the gradients of slopes, then the partial sums.
float* of_workspace(const Arena& arena, const NormPartition& partition, int row) {
  return arena.workspace<float>() + std::int64_t{row} * partition.channels;
}

NormScratch scratch_of(const Arena& arena, const NormPartition& partition, const NormWorkspace& workspace,
                       BufferId counters) {
  return {of_workspace(arena, partition, workspace.rows), arena.as<unsigned>(counters)};
}

// True for one slope per channel, false for a shared one.
bool has_slope_per_channel(const Context& context, const std::optional<Read>& slope) {
  return slope && context.buffer(*slope).bytes > sizeof(float);
}

}  // namespace

NormStatistics statistics_of(const BatchNormMoments& moments, DType scale_shift_dtype, const BatchNorm& op,
                             const Arena& arena) {
  return {.scale = arena.as<float>(moments.scale),
          .bias = arena.as<float>(moments.bias),
          .running_mean = arena.as<float>(moments.running_mean),
          .running_variance = arena.as<float>(moments.running_variance),
          .mean = arena.optional<float>(moments.mean),
          .inv_std = arena.as<float>(moments.inv_std),
          .scale_shift = arena.data(moments.scale_shift),
          .scale_shift_dtype = scale_shift_dtype,
          .epsilon = static_cast<float>(op.epsilon),
          .momentum = static_cast<float>(op.momentum)};
}

Binder prepare(Context& context, Instruction& instruction, const BatchNormStatistics& norm) {
  const NormPartition partition = partition_of(context, instruction);
  return launching(context, [=, op = context.op<BatchNorm>(instruction), dtype = context.dtype(norm.in),
                             scale_shift_dtype = context.dtype(norm.moments.scale_shift)](
                                const Arena& arena, cudaStream_t stream) {
    launch_norm_statistics(partition, dtype, arena.data(norm.in),
                           scratch_of(arena, partition, {}, norm.counters),
                           statistics_of(norm.moments, scale_shift_dtype, op, arena), stream);
  });
}

Binder prepare(Context& context, Instruction& instruction, const BatchNormFinalize& norm) {
  return launching(
      context,
      [=, op = context.op<BatchNorm>(instruction), partition = partition_of(context, instruction),
       scale_shift_dtype = context.dtype(norm.moments.scale_shift)](const Arena& arena, cudaStream_t stream) {
        launch_norm_finalize(partition.elements_per_channel, partition.channels, arena.as<float>(norm.sums),
                             statistics_of(norm.moments, scale_shift_dtype, op, arena), stream);
      });
}

Binder prepare(Context& context, Instruction& instruction, const BatchNormApply& norm) {
  const NormPartition partition = partition_of(context, instruction);
  return launching(context, [=, op = context.op<BatchNorm>(instruction), dtype = context.dtype(norm.in),
                             tf32 = context.is_tf32(context.dtype(norm.in)),
                             slope_per_channel = has_slope_per_channel(context, norm.slope)](
                                const Arena& arena, cudaStream_t stream) {
    const NormApply pass{.in = arena.data(norm.in),
                         .scale_shift = arena.as<float>(norm.line()),
                         .out = arena.data(norm.out),
                         .residual = arena.optional(norm.residual),
                         .residual_scale_shift = arena.optional<float>(norm.residual_scale_shift),
                         .mask = arena.optional<std::uint8_t>(norm.relu_mask),
                         .relu = op.activation == Activation::relu,
                         .slope = {arena.optional<float>(norm.slope), slope_per_channel},
                         .out_sums = arena.optional<float>(norm.out_sums),
                         .scratch = {arena.workspace<float>(), arena.optional<unsigned>(norm.counters)},
                         .tf32 = tf32};
    NormInputSums from;
    if (norm.finalize)
      from = {arena.as<float>(norm.finalize->sums),
              statistics_of(norm.finalize->moments, DType::f32, op, arena)};
    launch_norm_apply(partition, dtype, pass, stream, from);
  });
}

Binder prepare(Context& context, Instruction& instruction, const BatchNormBackward& norm) {
  const NormPartition partition = partition_of(context, instruction);
  const NormWorkspace workspace = norm.slope ? kPreluWorkspace : NormWorkspace{};
  return launching(
      context, [=, dtype = context.dtype(norm.in),
                scale_shift_dtype = norm.scale_shift ? context.dtype(*norm.scale_shift) : DType::f32,
                slope_per_channel = has_slope_per_channel(context, norm.slope)](const Arena& arena,
                                                                                cudaStream_t stream) {
        float* const d_slope = arena.optional<float>(norm.d_slope);
        const bool shares_slope = d_slope && !slope_per_channel;
        NormBackward backward = backward_of(norm, arena, of_workspace(arena, partition, 0));
        backward.d_slope = shares_slope ? of_workspace(arena, partition, 3) : d_slope;
        backward.d_shared_slope = shares_slope ? d_slope : nullptr;
        const NormGradient first_pass{.in = arena.data(norm.in),
                                      .d_out = arena.data(norm.d_out),
                                      .second_d_out = arena.optional(norm.second_d_out),
                                      .mask = arena.optional<std::uint8_t>(norm.relu_mask),
                                      .scale_shift = arena.optional(norm.scale_shift),
                                      .scale_shift_dtype = scale_shift_dtype,
                                      .slope = {arena.optional<float>(norm.slope), slope_per_channel}};
        std::byte* const d_residual = arena.optional(norm.d_residual);
        // With a residual's gradient, the second pass reads the output of the first.
        const NormGradient second_pass =
            d_residual ? NormGradient{.in = first_pass.in, .d_out = d_residual} : first_pass;
        launch_norm_backward_sums(partition, dtype, first_pass, d_residual,
                                  scratch_of(arena, partition, workspace, norm.counters.value()), backward,
                                  {}, stream);
        launch_norm_backward_apply(partition, dtype, second_pass, backward.coefficients,
                                   {.data = arena.data(norm.d_in), .adds = norm.d_in.adds}, stream);
      });
}

Binder prepare(Context& context, Instruction& instruction, const BatchNormPairBackward& pair) {
  const NormPartition partition = partition_of(context, instruction);
  return launching(context, [=, dtype = context.dtype(pair.d_out)](const Arena& arena, cudaStream_t stream) {
    const auto row = [&](int index) { return of_workspace(arena, partition, index); };
    const NormGradient gradient{.in = arena.data(pair.norm.in),
                                .d_out = arena.data(pair.d_out),
                                .second_d_out = arena.optional(pair.second_d_out),
                                .shortcut_in = arena.data(pair.shortcut.in),
                                .mask = arena.optional<std::uint8_t>(pair.relu_mask)};
    // The first pass leaves the sum of a gradient in parts here; the second reads it and writes over it.
    const bool has_parts = pair.second_d_out || pair.relu_mask;
    std::byte* const d_shortcut = arena.data(pair.shortcut.d_in);
    const NormGradient sum{.in = gradient.in, .d_out = d_shortcut, .shortcut_in = gradient.shortcut_in};
    launch_norm_backward_sums(partition, dtype, gradient, has_parts ? d_shortcut : nullptr,
                              scratch_of(arena, partition, kPairWorkspace, pair.counters),
                              backward_of(pair.norm, arena, row(0)),
                              backward_of(pair.shortcut, arena, row(3)), stream);
    launch_norm_backward_apply(partition, dtype, has_parts ? sum : gradient, row(0),
                               {.data = arena.data(pair.norm.d_in), .shortcut = d_shortcut}, stream);
  });
}

Binder prepare(Context& context, Instruction& instruction, const BatchNormPoolBackward& norm) {
  const Shape& shape = context.graph.values[context.op<BatchNorm>(instruction).in].shape;
  const NormPartition partition = partition_of(context, instruction);
  return launching(
      context, [=, dtype = context.dtype(norm.in), scale_shift_dtype = context.dtype(norm.scale_shift)](
                   const Arena& arena, cudaStream_t stream) {
        const NormBackward backward = backward_of(norm, arena, of_workspace(arena, partition, 0));
        const NormGradient of_winners{.in = arena.data(norm.winners),
                                      .d_out = arena.data(norm.d_out),
                                      .second_d_out = arena.optional(norm.second_d_out),
                                      .scale_shift = arena.data(norm.scale_shift),
                                      .scale_shift_dtype = scale_shift_dtype};
        launch_norm_backward_sums(partition, dtype, of_winners, nullptr,
                                  scratch_of(arena, partition, {}, norm.counters), backward, {}, stream);
        launch_norm_pool_backward_apply(shape, dtype,
                                        {.in = arena.data(norm.in),
                                         .d_out = of_winners.d_out,
                                         .second_d_out = of_winners.second_d_out,
                                         .argmax = arena.as<std::uint8_t>(norm.argmax)},
                                        backward.coefficients, arena.data(norm.d_in), stream);
      });
}

Binder prepare(Context& context, Instruction& instruction, const BatchNormBackwardApply& norm) {
  return launching(context, [=, partition = partition_of(context, instruction),
                             dtype = context.dtype(norm.in)](const Arena& arena, cudaStream_t stream) {
    launch_norm_backward_apply(
        partition, dtype,
        {.in = arena.data(norm.in),
         .d_out = arena.data(norm.d_activated),
         .shortcut_in = arena.optional(norm.shortcut_in)},
        arena.as<float>(norm.coefficients),
        {.data = arena.data(norm.d_in), .shortcut = arena.optional(norm.d_shortcut_in)}, stream);
  });
}

}  // namespace plumb::cuda
