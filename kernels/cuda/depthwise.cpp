// Instructions of depthwise convolutions: our own kernels, which need no plan.
#include "kernels/cuda/depthwise.h"

#include <stdexcept>

#include "kernels/cuda/binding.h"

namespace plumb::cuda {

namespace {

Binder prepare(const Context& context, const Instruction&, const DepthwiseShape& shape,
               const ConvForward& conv) {
  return [=, dtype = context.dtype(conv.in), stream = context.stream](const Arena& arena) -> ComputeFn {
    return [=, in = arena.data(conv.in), weight = arena.data(conv.weight), out = arena.data(conv.out)] {
      launch_depthwise_forward(dtype, shape, in, weight, out, stream);
    };
  };
}

Binder prepare(const Context& context, const Instruction&, const DepthwiseShape& shape,
               const ConvBackwardData& conv) {
  return [=, dtype = context.dtype(conv.d_out), stream = context.stream](const Arena& arena) -> ComputeFn {
    return
        [=, d_out = arena.data(conv.d_out), weight = arena.data(conv.weight), d_in = arena.data(conv.d_in)] {
          launch_depthwise_backward_data(dtype, shape, d_out, weight, d_in, stream);
        };
  };
}

Binder prepare(const Context& context, Instruction& instruction, const DepthwiseShape& shape,
               const ConvBackwardWeights& conv) {
  const DType dtype = context.dtype(conv.in), out_dtype = context.dtype(conv.d_weight);
  instruction.workspace_bytes = depthwise_workspace_bytes(shape, dtype);
  return [=, lane = instruction.lane, stream = context.stream](const Arena& arena) -> ComputeFn {
    return [=, in = arena.data(conv.in), d_out = arena.data(conv.d_out), d_weight = arena.data(conv.d_weight),
            partials = reinterpret_cast<float*>(arena.workspace(lane))] {
      launch_depthwise_backward_weights(dtype, shape, in, d_out, partials, out_dtype, d_weight, stream);
    };
  };
}

Binder prepare(const Context&, const Instruction& instruction, const DepthwiseShape&, const auto&) {
  throw std::logic_error(instruction.name + " isn't a plain depthwise convolution");
}

}  // namespace

Binder prepare_depthwise(Context& context, Instruction& instruction) {
  const Conv& op = std::get<Conv>(context.graph.ops[instruction.op]);
  const auto* forward = instruction.as<ConvForward>();
  const auto* weights = instruction.as<ConvBackwardWeights>();
  const bool is_fused =
      (forward && (forward->scale_shift || forward->sums)) || (weights && weights->scale_shift);
  if (!is_depthwise(context.graph, op) || op.in == 0 || is_fused)
    throw std::logic_error(instruction.name + " isn't a plain depthwise convolution behind another layer");
  instruction.workspace_bytes = 0;
  const DepthwiseShape shape = depthwise_shape(context.graph, op);
  return std::visit([&](const auto& conv) { return prepare(context, instruction, shape, conv); },
                    instruction.operation);
}

}  // namespace plumb::cuda
