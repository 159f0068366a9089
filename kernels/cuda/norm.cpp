#include "kernels/cuda/norm.h"

#include <optional>
#include <stdexcept>
#include <vector>

#include "kernels/cuda/binding.h"

namespace plumb::cuda {
namespace {

// Of a norm's input; the workspace holds the coefficients, then the partial sums.
NormPartition partition_of(const Context& context, const Norm& op) {
  const Shape& in = context.graph.values[op.in].shape;
  return partition_norm(in.n * in.h * in.w, in.c);
}
float* partials_in(std::byte* workspace, const NormPartition& partition) {
  return reinterpret_cast<float*>(workspace) + 3 * static_cast<std::ptrdiff_t>(partition.channels);
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
        return [=, in = arena.data(uses[0].buffer), partials = partials_in(arena.workspace(lane), partition),
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

// Step::uses[3 …]: [mask w], [residual r], [residual's factors r].
struct ApplyUses {
  std::optional<BufferId> mask, residual, residual_factors;
};
ApplyUses apply_uses(const Context& context, const Step& step) {
  ApplyUses found;
  for (std::size_t i = 3; i < step.uses.size(); ++i) {
    const bool is_mask = context.buffer(step, i).dtype == DType::u8;
    (is_mask ? found.mask : !found.residual ? found.residual : found.residual_factors) = step.uses[i].buffer;
  }
  return found;
}

Finish prepare_apply(const Context& context, Step& step, const Norm& op) {
  step.workspace_bytes = 0;
  return [=, partition = partition_of(context, op), optional = apply_uses(context, step), uses = step.uses,
          stream = context.stream, dtype = context.buffer(step, 0).dtype,
          factors_dtype = context.buffer(step, 1).dtype](const Arena& arena) -> ComputeFn {
    const auto factors = [&](BufferId id) { return NormFactors{arena.data(id), factors_dtype}; };
    NormApply apply{.in = arena.data(uses[0].buffer),
                    .factors = factors(uses[1].buffer),
                    .out = arena.data(uses[2].buffer),
                    .relu = op.activation == Activation::relu};
    if (optional.mask) apply.mask = arena.as<std::uint8_t>(*optional.mask);
    if (optional.residual) apply.residual = arena.data(*optional.residual);
    if (optional.residual_factors) apply.residual_factors = factors(*optional.residual_factors);
    return [=] { launch_norm_apply(partition, dtype, apply, stream); };
  };
}

// Step::uses[9 …]: a mask where there is a ReLU, then [second d_out r], [d_residual w].
struct BackwardUses {
  std::optional<BufferId> mask, activated, factors, second_d_out, d_residual;
  DType factors_dtype = DType::f32;
};
BackwardUses backward_uses(const Context& context, const Step& step, const Norm& op) {
  BackwardUses found;
  std::size_t i = 9;
  if (op.activation == Activation::relu) {
    const Buffer& mask = context.buffer(step, i);
    const bool is_bits = mask.dtype == DType::u8, is_output = mask.dims == context.buffer(step, 0).dims;
    (is_bits ? found.mask : is_output ? found.activated : found.factors) = step.uses[i].buffer;
    if (found.factors) found.factors_dtype = mask.dtype;
    ++i;
  }
  for (; i < step.uses.size(); ++i)
    (step.uses[i].reads() ? found.second_d_out : found.d_residual) = step.uses[i].buffer;
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
  return pass;
}

Finish prepare_backward(Context& context, Step& step, const Norm& op) {
  const NormPartition partition = partition_of(context, op);
  step.workspace_bytes = norm_workspace_bytes(partition.pixels, partition.channels);
  return [=, optional = backward_uses(context, step, op), uses = step.uses, lane = step.lane,
          stream = context.stream, dtype = context.buffer(step, 0).dtype](const Arena& arena) -> ComputeFn {
    const auto floats = [&](std::size_t use) { return arena.as<float>(uses.at(use).buffer); };
    std::byte* const workspace = arena.workspace(lane);
    float* const partials = partials_in(workspace, partition);
    const NormBackward backward{.scale = floats(2),
                                .mean = floats(4),
                                .inverse_deviation = floats(5),
                                .d_scale = floats(7),
                                .d_bias = floats(8),
                                .coefficients = reinterpret_cast<float*>(workspace)};
    const NormGradient first_pass = gradient_pass(uses, optional, arena);
    std::byte* const d_residual = optional.d_residual ? arena.data(*optional.d_residual) : nullptr;
    // With a residual the first pass has written what the second one reads.
    const NormGradient second_pass =
        d_residual ? NormGradient{.in = first_pass.in, .d_out = d_residual} : first_pass;
    return [=, d_in = arena.data(uses[6].buffer)] {
      launch_norm_backward_sums(partition, dtype, first_pass, backward.mean, d_residual, partials, stream);
      launch_norm_backward_finish(partition, partials, backward, stream);
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
    return [=, d_in = arena.data(uses[3].buffer)] {
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
