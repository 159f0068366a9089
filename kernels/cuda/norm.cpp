#include "kernels/cuda/norm.h"

#include <optional>

#include "kernels/cuda/binding.h"

namespace plumb::cuda {
namespace {

const BatchNorm& norm_of(const Context& context, const Instruction& instruction) {
  return std::get<BatchNorm>(context.graph.ops[instruction.op]);
}
// Partition for a norm's input.
NormPartition partition_of(const Context& context, const Instruction& instruction) {
  const Shape& in = context.graph.values[norm_of(context, instruction).in].shape;
  return partition_norm(in.n * in.h * in.w, in.c);
}
// Workspace layout: the coefficients, with a PReLU the gradients of slopes, then the partial sums.
float* of_workspace(std::byte* workspace, const NormPartition& partition, int rows) {
  return reinterpret_cast<float*>(workspace) + std::int64_t{rows} * partition.channels;
}

// True for one slope per channel, false for a shared one.
bool has_slope_per_channel(const Context& context, const std::optional<Read>& slope) {
  return slope && context.buffer(*slope).bytes > sizeof(float);
}
DType dtype_of(const Context& context, const std::optional<Read>& operand) {
  return operand ? context.dtype(*operand) : DType::f32;
}

NormStatistics statistics_of(const BatchNormMoments& moments, DType factors_dtype, const BatchNorm& op,
                             const Arena& arena) {
  return {.scale = arena.as<float>(moments.scale),
          .bias = arena.as<float>(moments.bias),
          .running_mean = arena.as<float>(moments.running_mean),
          .running_variance = arena.as<float>(moments.running_variance),
          .mean = arena.as<float>(moments.mean),
          .inverse_deviation = arena.as<float>(moments.inv_std),
          .factors = arena.data(moments.scale_shift),
          .factors_dtype = factors_dtype,
          .epsilon = static_cast<float>(op.epsilon),
          .momentum = static_cast<float>(op.momentum)};
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const BatchNormStatistics& norm) {
  const NormPartition partition = partition_of(context, instruction);
  instruction.workspace_bytes = norm_workspace_bytes(partition.pixels, partition.channels);
  return [=, op = norm_of(context, instruction), lane = instruction.lane, stream = context.stream,
          dtype = context.dtype(norm.in),
          factors_dtype = context.dtype(norm.moments.scale_shift)](const Arena& arena) -> ComputeFn {
    return [=, in = arena.data(norm.in),
            partials = of_workspace(arena.workspace(lane), partition, kNormSums + 1),
            statistics = statistics_of(norm.moments, factors_dtype, op, arena)] {
      launch_norm_statistics(partition, dtype, in, partials, stream);
      launch_norm_finish(partition, partials, statistics, stream);
    };
  };
}

Binder prepare(Context& context, Instruction& instruction, const BatchNormFinalize& norm) {
  instruction.workspace_bytes = 0;
  return [=, op = norm_of(context, instruction), partition = partition_of(context, instruction),
          stream = context.stream,
          factors_dtype = context.dtype(norm.moments.scale_shift)](const Arena& arena) -> ComputeFn {
    return [=, sums = arena.as<float>(norm.sums),
            statistics = statistics_of(norm.moments, factors_dtype, op, arena)] {
      launch_norm_finalize(partition.pixels, partition.channels, sums, statistics, stream);
    };
  };
}

Binder prepare(Context& context, Instruction& instruction, const BatchNormApply& norm) {
  instruction.workspace_bytes = 0;
  return [=, relu = norm_of(context, instruction).activation == Activation::relu,
          partition = partition_of(context, instruction), stream = context.stream,
          dtype = context.dtype(norm.in), factors_dtype = context.dtype(norm.scale_shift),
          residual_factors_dtype = dtype_of(context, norm.residual_scale_shift),
          slope_per_channel = has_slope_per_channel(context, norm.slope)](const Arena& arena) -> ComputeFn {
    const NormApply apply{
        .in = arena.data(norm.in),
        .factors = {arena.data(norm.scale_shift), factors_dtype},
        .out = arena.data(norm.out),
        .residual = arena.optional(norm.residual),
        .residual_factors = {arena.optional(norm.residual_scale_shift), residual_factors_dtype},
        .mask = arena.optional<std::uint8_t>(norm.relu_mask),
        .relu = relu,
        .slope = {arena.optional<float>(norm.slope), slope_per_channel}};
    return [=] { launch_norm_apply(partition, dtype, apply, stream); };
  };
}

Binder prepare(Context& context, Instruction& instruction, const BatchNormBackward& norm) {
  const NormPartition partition = partition_of(context, instruction);
  const int sums = norm.slope ? kPreluSums : kNormSums;
  instruction.workspace_bytes = norm_workspace_bytes(partition.pixels, partition.channels, sums);
  return [=, lane = instruction.lane, stream = context.stream, dtype = context.dtype(norm.in),
          factors_dtype = dtype_of(context, norm.scale_shift),
          slope_per_channel = has_slope_per_channel(context, norm.slope)](const Arena& arena) -> ComputeFn {
    std::byte* const workspace = arena.workspace(lane);
    float* const partials = of_workspace(workspace, partition, sums + 1);
    float* const d_slope = arena.optional<float>(norm.d_slope);
    const bool adds_slopes = d_slope && !slope_per_channel;
    const NormBackward backward{.scale = arena.as<float>(norm.scale),
                                .mean = arena.as<float>(norm.mean),
                                .inverse_deviation = arena.as<float>(norm.inv_std),
                                .d_scale = arena.as<float>(norm.d_scale),
                                .d_bias = arena.as<float>(norm.d_bias),
                                .coefficients = reinterpret_cast<float*>(workspace),
                                .d_slope = adds_slopes ? of_workspace(workspace, partition, 3) : d_slope};
    const NormGradient first_pass{.in = arena.data(norm.in),
                                  .d_out = arena.data(norm.d_out),
                                  .second_d_out = arena.optional(norm.second_d_out),
                                  .mask = arena.optional<std::uint8_t>(norm.relu_mask),
                                  .activated = arena.optional(norm.out),
                                  .factors = {arena.optional(norm.scale_shift), factors_dtype},
                                  .slope = {arena.optional<float>(norm.slope), slope_per_channel}};
    std::byte* const d_residual = arena.optional(norm.d_residual);
    // With a residual's gradient, the second pass reads the output of the first.
    const NormGradient second_pass =
        d_residual ? NormGradient{.in = first_pass.in, .d_out = d_residual} : first_pass;
    const NormInputGradient d_in{.data = arena.data(norm.d_in), .adds = norm.d_in.adds};
    return [=] {
      launch_norm_backward_sums(partition, dtype, first_pass, backward.mean, d_residual, partials, stream);
      launch_norm_backward_finish(partition, partials, backward, stream);
      if (adds_slopes) launch_norm_sum_slopes(backward.d_slope, partition.channels, d_slope, stream);
      launch_norm_backward_apply(partition, dtype, second_pass, {.data = workspace, .dtype = DType::f32},
                                 d_in, stream);
    };
  };
}

Binder prepare(Context& context, Instruction& instruction, const BatchNormBackwardApply& norm) {
  instruction.workspace_bytes = 0;
  return [=, partition = partition_of(context, instruction), stream = context.stream,
          dtype = context.dtype(norm.in),
          coefficients_dtype = context.dtype(norm.coefficients)](const Arena& arena) -> ComputeFn {
    const NormGradient gradient{.in = arena.data(norm.in), .d_out = arena.data(norm.d_activated)};
    const NormFactors coefficients{.data = arena.data(norm.coefficients), .dtype = coefficients_dtype};
    const NormInputGradient d_in{.data = arena.data(norm.d_in)};
    return [=] { launch_norm_backward_apply(partition, dtype, gradient, coefficients, d_in, stream); };
  };
}

}  // namespace plumb::cuda
