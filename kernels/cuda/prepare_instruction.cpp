// Chooses the implementation of an instruction.
#include <concepts>
#include <stdexcept>

#include "kernels/cuda/binding.h"
#include "kernels/cuda/plan/depthwise_shape.h"

namespace plumb::cuda {
namespace {

template <typename T>
concept Convolution = std::same_as<T, ConvForward> || std::same_as<T, ConvBackwardData> ||
    std::same_as<T, ConvBackwardWeights> || std::same_as<T, ConvNormBackwardData>;

Binder prepare(Context& context, Instruction& instruction, const Convolution auto& conv) {
  if constexpr (requires { conv.relu_mask; })
    if (conv.relu_mask) return prepare_block_end(context, instruction, conv);
  return is_depthwise(context.graph, context.op<Conv>(instruction)) ? prepare_depthwise(context, instruction)
                                                                    : prepare_conv(context, instruction);
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
  Binder binder = std::visit([&](const auto& operation) { return prepare(context, instruction, operation); },
                             instruction.operation);
  if (binder && instruction.engine.empty()) instruction.engine = kOwnKernel;  // our own kernels
  return binder;
}

}  // namespace plumb::cuda
