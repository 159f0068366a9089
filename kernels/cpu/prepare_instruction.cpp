// Chooses the implementation of each instruction.
#include <concepts>
#include <stdexcept>

#include "kernels/cpu/binding.h"

namespace plumb::cpu {
namespace {

// Instructions of the runner and the communicator.
Binder prepare(Context&, Instruction&, const LoadBatch&) {
  return {};
}
Binder prepare(Context&, Instruction&, const Collective&) {
  return {};
}

template <typename T>
concept NotOfCpu = std::same_as<T, ConvNormBackwardData> || std::same_as<T, BatchNormStatistics> ||
    std::same_as<T, BatchNormFinalize> || std::same_as<T, BatchNormApply> ||
    std::same_as<T, BatchNormPairBackward> || std::same_as<T, BatchNormPoolBackward> ||
    std::same_as<T, BatchNormBackwardApply> || std::same_as<T, SamplePixels> ||
    std::same_as<T, ChannelProducts> || std::same_as<T, ProductNormStatistics> ||
    std::same_as<T, BlockEndForward> || std::same_as<T, MaskedGradient> ||
    std::same_as<T, ProductNormBackward> || std::same_as<T, BlockEndBackwardData> ||
    std::same_as<T, FindOverflow> || std::same_as<T, Recorded>;

Binder prepare(Context&, Instruction& instruction, const NotOfCpu auto&) {
  throw std::logic_error(instruction.name + " is an instruction that no CPU runs");
}

}  // namespace

Binder prepare_instruction(Context& context, Instruction& instruction) {
  return std::visit([&](const auto& operation) { return prepare(context, instruction, operation); },
                    instruction.operation);
}

}  // namespace plumb::cpu
