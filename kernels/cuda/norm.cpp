#include "kernels/cuda/norm.h"

#include <optional>
#include <stdexcept>
#include <vector>

#include "kernels/cuda/binding.h"

namespace plumb::cuda {
namespace {

// Of a norm's input; the workspace holds the factors or coefficients, then the partial sums.
NormPartition partition_of(const Context& context, const Norm& op) {
  const Shape& in = context.graph.values[op.in].shape;
  return partition_norm(in.n * in.h * in.w, in.c);
}
float* partials_in(std::byte* workspace, const NormPartition& partition) {
  return reinterpret_cast<float*>(workspace) + 3 * static_cast<std::ptrdiff_t>(partition.channels);
}

// norm_forward and norm_finalize have these at the same places; where factors go is the caller's business.
NormStatistics statistics_of(const std::vector<BufferUse>& uses, const Norm& op, const Arena& arena) {
  const auto floats = [&](std::size_t use) { return arena.as<float>(uses.at(use).buffer); };
  return {.scale = floats(1),
          .bias = floats(2),
          .running_mean = floats(3),
          .running_variance = floats(4),
          .mean = floats(6),
          .inverse_deviation = floats(7),
          .epsilon = static_cast<float>(op.epsilon),
          .momentum = static_cast<float>(op.momentum)};
}

// From Step::uses[first] on: [mask w], [residual r].
struct ApplyUses {
  std::optional<BufferId> mask, residual;
};
ApplyUses apply_uses(const Context& context, const Step& step, std::size_t first) {
  ApplyUses found;
  for (std::size_t i = first; i < step.uses.size(); ++i) {
    const bool is_mask = context.buffer(step, i).dtype == DType::u8;
    (is_mask ? found.mask : found.residual) = step.uses[i].buffer;
  }
  return found;
}
NormApply apply_pass(const ApplyUses& optional, const Norm& op, const Arena& arena) {
  NormApply pass;
  if (optional.mask) pass.mask = arena.as<std::uint8_t>(*optional.mask);
  if (optional.residual) pass.residual = arena.data(*optional.residual);
  pass.relu = op.activation == Activation::relu;
  return pass;
}

Finish prepare_forward(Context& context, Step& step, const Norm& op) {
  const NormPartition partition = partition_of(context, op);
  step.workspace_bytes = norm_workspace_bytes(partition.pixels, partition.channels);
  return [=, optional = apply_uses(context, step, 8), uses = step.uses, lane = step.lane,
          stream = context.stream, dtype = context.buffer(step, 0).dtype](const Arena& arena) -> ComputeFn {
    std::byte* const workspace = arena.workspace(lane);
    float* const partials = partials_in(workspace, partition);
    NormStatistics statistics = statistics_of(uses, op, arena);
    statistics.factors = workspace;
    NormApply apply = apply_pass(optional, op, arena);
    apply.in = arena.data(uses[0].buffer);
    apply.factors = {.data = workspace, .dtype = DType::f32};
    apply.out = arena.data(uses[5].buffer);
    return [=] {
      launch_norm_statistics(partition, dtype, apply.in, partials, stream);
      launch_norm_finish(partition, partials, statistics, stream);
      launch_norm_apply(partition, dtype, apply, stream);
    };
  };
}

Finish prepare_finalize(const Context& context, Step& step, const Norm& op) {
  step.workspace_bytes = 0;
  return [=, partition = partition_of(context, op), uses = step.uses, stream = context.stream,
          dtype = context.buffer(step, 5).dtype](const Arena& arena) -> ComputeFn {
    NormStatistics statistics = statistics_of(uses, op, arena);
    statistics.factors = arena.data(uses[5].buffer);
    statistics.factors_dtype = dtype;
    return [=, sums = arena.as<float>(uses[0].buffer)] {
      launch_norm_finalize(partition.pixels, partition.channels, sums, statistics, stream);
    };
  };
}

Finish prepare_apply(const Context& context, Step& step, const Norm& op) {
  step.workspace_bytes = 0;
  return [=, partition = partition_of(context, op), optional = apply_uses(context, step, 3), uses = step.uses,
          stream = context.stream, dtype = context.buffer(step, 0).dtype,
          factors_dtype = context.buffer(step, 1).dtype](const Arena& arena) -> ComputeFn {
    NormApply apply = apply_pass(optional, op, arena);
    apply.in = arena.data(uses[0].buffer);
    apply.factors = {.data = arena.data(uses[1].buffer), .dtype = factors_dtype};
    apply.out = arena.data(uses[2].buffer);
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
    case StepKind::norm_forward:
      return prepare_forward(context, step, op);
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
