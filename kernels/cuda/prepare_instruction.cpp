// Chooses the implementation of an instruction. Depthwise convolutions run by our own kernels, without a
// plan.
#include <concepts>
#include <stdexcept>

#include "kernels/cuda/binding.h"
#include "kernels/cuda/own/conv.h"
#include "kernels/cuda/plan/storage.h"

namespace plumb::cuda {
namespace {

Binder depthwise(const Context& context, const WindowShape& shape, const ConvForward& conv) {
  return launching(context, [=, dtype = context.dtype(conv.in)](const Arena& arena, cudaStream_t stream) {
    launch_depthwise_forward(dtype, shape, arena.data(conv.in), arena.data(conv.weight), arena.data(conv.out),
                             stream);
  });
}
Binder depthwise(const Context& context, const WindowShape& shape, const ConvBackwardData& conv) {
  return launching(context, [=, dtype = context.dtype(conv.d_out)](const Arena& arena, cudaStream_t stream) {
    launch_depthwise_backward_data(dtype, shape, arena.data(conv.d_out), arena.data(conv.weight),
                                   arena.data(conv.d_in), stream);
  });
}
Binder depthwise(const Context& context, const WindowShape& shape, const ConvBackwardWeights& conv) {
  return launching(context, [=, dtype = context.dtype(conv.in)](const Arena& arena, cudaStream_t stream) {
    launch_depthwise_backward_weights(dtype, shape, arena.data(conv.in), arena.data(conv.d_out),
                                      arena.workspace<float>(), arena.data(conv.d_weight), stream);
  });
}
Binder depthwise(const Context&, const WindowShape&, const ConvNormBackwardData&) {
  throw std::logic_error("no kernel goes back through a depthwise convolution and a norm");
}

template <typename T>
concept Convolution = std::same_as<T, ConvForward> || std::same_as<T, ConvBackwardData> ||
    std::same_as<T, ConvBackwardWeights> || std::same_as<T, ConvNormBackwardData>;

Binder prepare(Context& context, Instruction& instruction, const Convolution auto& conv) {
  if constexpr (requires { conv.relu_mask; })
    if (conv.relu_mask) return prepare_block_end(context, instruction, conv);
  const Conv& op = context.op<Conv>(instruction);
  if (!is_depthwise(context.graph, op)) return prepare_conv(context, instruction);
  return depthwise(context, window_shape(context.graph, op), conv);
}

// Instructions of the runner and the communicator.
Binder prepare(Context&, Instruction&, const LoadBatch&) {
  return {};
}
Binder prepare(Context&, Instruction&, const Collective&) {
  return {};
}

// A GPU's batch norm is BatchNormStatistics and BatchNormApply.
template <typename T>
concept NotOfCuda = std::same_as<T, BatchNormForward> || std::same_as<T, Recorded>;

Binder prepare(Context&, Instruction& instruction, const NotOfCuda auto&) {
  throw std::logic_error(instruction.name + " is an instruction that no CUDA device runs");
}

}  // namespace

Binder prepare_instruction(Context& context, Instruction& instruction) {
  const std::size_t own = own_workspace_bytes(context.graph, context.program, instruction);
  if (own > 0) instruction.workspace_bytes = own;
  Binder binder = std::visit([&](const auto& operation) { return prepare(context, instruction, operation); },
                             instruction.operation);
  if (binder && instruction.engine.empty()) instruction.engine = kOwnKernel;  // our own kernels
  return binder;
}

}  // namespace plumb::cuda
