#include "kernels/cuda/norm.h"

#include <optional>
#include <stdexcept>
#include <vector>

#include "kernels/cuda/binding.h"

namespace plumb::cuda {
namespace {

// Of a norm's input.
NormPartition partition_of(const Context& context, const Norm& op) {
  const Shape& in = context.graph.values[op.in].shape;
  return partition_norm(in.n * in.h * in.w, in.c);
}
// How many sums of a channel backward makes.
int backward_sums(const Norm& op) {
  return op.activation == Activation::prelu ? kPreluSums : kNormSums;
}
// The workspace holds the coefficients, with a PReLU the gradients of slopes, then the partial sums.
float* of_workspace(std::byte* workspace, const NormPartition& partition, int rows) {
  return reinterpret_cast<float*>(workspace) + std::int64_t{rows} * partition.channels;
}
// f32 [channels] or [1].
NormSlope slope_of(const Arena& arena, BufferId buffer, bool per_channel) {
  return {.data = arena.as<float>(buffer), .per_channel = per_channel};
}
bool is_per_channel(const Buffer& slope) {
  return slope.bytes > sizeof(float);
}

// norm_statistics and norm_finalize have these at the same places.
NormStatistics statistics_of(const std::vector<BufferUse>& uses, DType factors_dtype, const Norm& op,
                             const Arena& arena) {
  const auto floats = [&](std::size_t use) { return arena.as<float>(uses.at(use).buffer); };
  return {.scale = floats(1),
          .bias = floats(2),
          .running_mean = floats(3),
          .running_variance = floats(4),
          .mean = floats(6),
          .inverse_deviation = floats(7),
          .factors = arena.data(uses.at(5).buffer),
          .factors_dtype = factors_dtype,
          .epsilon = static_cast<float>(op.epsilon),
          .momentum = static_cast<float>(op.momentum)};
}

Finish prepare_statistics(const Context& context, Step& step, const Norm& op) {
  const NormPartition partition = partition_of(context, op);
  step.workspace_bytes = norm_workspace_bytes(partition.pixels, partition.channels);
  return
      [=, uses = step.uses, lane = step.lane, stream = context.stream, dtype = context.buffer(step, 0).dtype,
       factors_dtype = context.buffer(step, 5).dtype](const Arena& arena) -> ComputeFn {
        return [=, in = arena.data(uses[0].buffer),
                partials = of_workspace(arena.workspace(lane), partition, kNormSums + 1),
                statistics = statistics_of(uses, factors_dtype, op, arena)] {
          launch_norm_statistics(partition, dtype, in, partials, stream);
          launch_norm_finish(partition, partials, statistics, stream);
        };
      };
}

Finish prepare_finalize(const Context& context, Step& step, const Norm& op) {
  step.workspace_bytes = 0;
  return [=, partition = partition_of(context, op), uses = step.uses, stream = context.stream,
          factors_dtype = context.buffer(step, 5).dtype](const Arena& arena) -> ComputeFn {
    return [=, sums = arena.as<float>(uses[0].buffer),
            statistics = statistics_of(uses, factors_dtype, op, arena)] {
      launch_norm_finalize(partition.pixels, partition.channels, sums, statistics, stream);
    };
  };
}

// Step::uses[3 …]: [mask w], [residual r], [residual's factors r], [slope r].
struct ApplyUses {
  std::optional<BufferId> mask, residual, residual_factors, slope;
  bool slope_per_channel = false;
};
ApplyUses apply_uses(const Context& context, const Step& step, const Norm& op) {
  ApplyUses found;
  std::size_t end = step.uses.size();
  if (op.activation == Activation::prelu) {
    found.slope = step.uses.at(--end).buffer;
    found.slope_per_channel = is_per_channel(context.buffer(step, end));
  }
  for (std::size_t i = 3; i < end; ++i) {
    const bool is_mask = context.buffer(step, i).dtype == DType::u8;
    (is_mask ? found.mask : !found.residual ? found.residual : found.residual_factors) = step.uses[i].buffer;
  }
  return found;
}

Finish prepare_apply(const Context& context, Step& step, const Norm& op) {
  step.workspace_bytes = 0;
  return [=, partition = partition_of(context, op), optional = apply_uses(context, step, op),
          uses = step.uses, stream = context.stream, dtype = context.buffer(step, 0).dtype,
          factors_dtype = context.buffer(step, 1).dtype](const Arena& arena) -> ComputeFn {
    const auto factors = [&](BufferId id) { return NormFactors{arena.data(id), factors_dtype}; };
    NormApply apply{.in = arena.data(uses[0].buffer),
                    .factors = factors(uses[1].buffer),
                    .out = arena.data(uses[2].buffer),
                    .relu = op.activation == Activation::relu};
    if (optional.mask) apply.mask = arena.as<std::uint8_t>(*optional.mask);
    if (optional.residual) apply.residual = arena.data(*optional.residual);
    if (optional.residual_factors) apply.residual_factors = factors(*optional.residual_factors);
    if (optional.slope) apply.slope = slope_of(arena, *optional.slope, optional.slope_per_channel);
    return [=] { launch_norm_apply(partition, dtype, apply, stream); };
  };
}

// Step::uses[9 …]: a mask where there is an activation, then [second d_out r], [d_residual w], [slope r,
// d_slope w].
struct BackwardUses {
  std::optional<BufferId> mask, activated, factors, second_d_out, d_residual, slope, d_slope;
  DType factors_dtype = DType::f32;
  bool slope_per_channel = false;
};
BackwardUses backward_uses(const Context& context, const Step& step, const Norm& op) {
  BackwardUses found;
  std::size_t i = 9, end = step.uses.size();
  if (op.activation == Activation::prelu) {
    found.d_slope = step.uses.at(--end).buffer;
    found.slope = step.uses.at(--end).buffer;
    found.slope_per_channel = is_per_channel(context.buffer(step, end));
  }
  if (op.activation != Activation::none) {
    const Buffer& mask = context.buffer(step, i);
    const bool is_bits = mask.dtype == DType::u8, is_output = mask.dims == context.buffer(step, 0).dims;
    (is_bits ? found.mask : is_output ? found.activated : found.factors) = step.uses[i].buffer;
    if (found.factors) found.factors_dtype = mask.dtype;
    ++i;
  }
  for (; i < end; ++i) (step.uses[i].reads() ? found.second_d_out : found.d_residual) = step.uses[i].buffer;
  return found;
}
NormGradient gradient_pass(const std::vector<BufferUse>& uses, const BackwardUses& optional,
                           const Arena& arena) {
  NormGradient pass{.in = arena.data(uses[0].buffer), .d_out = arena.data(uses[1].buffer)};
  if (optional.mask) pass.mask = arena.as<std::uint8_t>(*optional.mask);
  if (optional.activated) pass.activated = arena.data(*optional.activated);
  if (optional.factors)
    pass.factors = {.data = arena.data(*optional.factors), .dtype = optional.factors_dtype};
  if (optional.second_d_out) pass.second_d_out = arena.data(*optional.second_d_out);
  if (optional.slope) pass.slope = slope_of(arena, *optional.slope, optional.slope_per_channel);
  return pass;
}

Finish prepare_backward(Context& context, Step& step, const Norm& op) {
  const NormPartition partition = partition_of(context, op);
  const int sums = backward_sums(op);
  step.workspace_bytes = norm_workspace_bytes(partition.pixels, partition.channels, sums);
  return [=, optional = backward_uses(context, step, op), uses = step.uses, lane = step.lane,
          stream = context.stream, dtype = context.buffer(step, 0).dtype](const Arena& arena) -> ComputeFn {
    const auto floats = [&](std::size_t use) { return arena.as<float>(uses.at(use).buffer); };
    std::byte* const workspace = arena.workspace(lane);
    float* const partials = of_workspace(workspace, partition, sums + 1);
    NormBackward backward{.scale = floats(2),
                          .mean = floats(4),
                          .inverse_deviation = floats(5),
                          .d_scale = floats(7),
                          .d_bias = floats(8),
                          .coefficients = reinterpret_cast<float*>(workspace)};
    float* const d_slope = optional.d_slope ? arena.as<float>(*optional.d_slope) : nullptr;
    const bool adds_slopes = d_slope && !optional.slope_per_channel;
    backward.d_slope = adds_slopes ? of_workspace(workspace, partition, 3) : d_slope;
    const NormGradient first_pass = gradient_pass(uses, optional, arena);
    std::byte* const d_residual = optional.d_residual ? arena.data(*optional.d_residual) : nullptr;
    // With a residual's gradient the first pass has written what the second one reads.
    const NormGradient second_pass =
        d_residual ? NormGradient{.in = first_pass.in, .d_out = d_residual} : first_pass;
    const NormInputGradient d_in{.data = arena.data(uses[6].buffer), .adds = uses[6].reads()};
    return [=] {
      launch_norm_backward_sums(partition, dtype, first_pass, backward.mean, d_residual, partials, stream);
      launch_norm_backward_finish(partition, partials, backward, stream);
      if (adds_slopes) launch_norm_sum_slopes(backward.d_slope, partition.channels, d_slope, stream);
      launch_norm_backward_apply(partition, dtype, second_pass, {.data = workspace, .dtype = DType::f32},
                                 d_in, stream);
    };
  };
}

Finish prepare_backward_apply(const Context& context, Step& step, const Norm& op) {
  step.workspace_bytes = 0;
  return [=, partition = partition_of(context, op), uses = step.uses, stream = context.stream,
          dtype = context.buffer(step, 0).dtype,
          coefficients_dtype = context.buffer(step, 2).dtype](const Arena& arena) -> ComputeFn {
    const NormGradient gradient{.in = arena.data(uses[1].buffer), .d_out = arena.data(uses[0].buffer)};
    const NormFactors coefficients{.data = arena.data(uses[2].buffer), .dtype = coefficients_dtype};
    return [=, d_in = NormInputGradient{.data = arena.data(uses[3].buffer)}] {
      launch_norm_backward_apply(partition, dtype, gradient, coefficients, d_in, stream);
    };
  };
}

}  // namespace

Finish prepare_norm(Context& context, Step& step) {
  const Norm& op = std::get<Norm>(context.graph.ops[step.op]);
  switch (step.kind) {
    case StepKind::norm_statistics:
      return prepare_statistics(context, step, op);
    case StepKind::norm_finalize:
      return prepare_finalize(context, step, op);
    case StepKind::norm_apply:
      return prepare_apply(context, step, op);
    case StepKind::norm_backward:
      return prepare_backward(context, step, op);
    case StepKind::norm_backward_apply:
      return prepare_backward_apply(context, step, op);
    default:
      throw std::logic_error(step.name + " is not a norm's step");
  }
}

}  // namespace plumb::cuda
