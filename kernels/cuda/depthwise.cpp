// Instructions of depthwise convolutions: our own kernels, which need no plan.
#include <stdexcept>

#include "kernels/cuda/binding.h"
#include "kernels/cuda/own/conv.h"

namespace plumb::cuda {
namespace {

Binder prepare(const Context& context, Instruction&, const WindowShape& shape, const ConvForward& conv) {
  return launching(context, [=, dtype = context.dtype(conv.in)](const Arena& arena, cudaStream_t stream) {
    launch_depthwise_forward(dtype, shape, arena.data(conv.in), arena.data(conv.weight), arena.data(conv.out),
                             stream);
  });
}

Binder prepare(const Context& context, Instruction&, const WindowShape& shape, const ConvBackwardData& conv) {
  return launching(context, [=, dtype = context.dtype(conv.d_out)](const Arena& arena, cudaStream_t stream) {
    launch_depthwise_backward_data(dtype, shape, arena.data(conv.d_out), arena.data(conv.weight),
                                   arena.data(conv.d_in), stream);
  });
}

Binder prepare(const Context& context, Instruction& instruction, const WindowShape& shape,
               const ConvBackwardWeights& conv) {
  const DType dtype = context.dtype(conv.in);
  instruction.workspace_bytes = depthwise_workspace_bytes(shape, dtype);
  return launching(context, [=](const Arena& arena, cudaStream_t stream) {
    launch_depthwise_backward_weights(dtype, shape, arena.data(conv.in), arena.data(conv.d_out),
                                      arena.workspace<float>(), arena.data(conv.d_weight), stream);
  });
}

Binder prepare(const Context&, Instruction& instruction, const WindowShape&, const auto&) {
  throw std::logic_error(instruction.name + " isn't a plain depthwise convolution");
}

}  // namespace

Binder prepare_depthwise(Context& context, Instruction& instruction) {
  instruction.workspace_bytes = 0;
  const WindowShape shape = window_shape(context.graph, context.op<Conv>(instruction));
  return std::visit([&](const auto& conv) { return prepare(context, instruction, shape, conv); },
                    instruction.operation);
}

}  // namespace plumb::cuda
