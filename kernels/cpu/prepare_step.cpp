// Chooses the implementation of each instruction.
#include <concepts>
#include <stdexcept>

#include "kernels/cpu/binding.h"

namespace plumb::cpu {
namespace {

// Steps of the runner and the communicator.
Binder prepare(Context&, Step&, const LoadBatch&) {
  return {};
}
Binder prepare(Context&, Step&, const Collective&) {
  return {};
}

template <typename T>
concept NotOfCpu = std::same_as<T, PackBatch> || std::same_as<T, ConvNormBackwardData> ||
    std::same_as<T, BatchNormStatistics> || std::same_as<T, BatchNormFinalize> ||
    std::same_as<T, BatchNormApply> || std::same_as<T, BatchNormBackwardApply> ||
    std::same_as<T, FindOverflow> || std::same_as<T, Recorded>;

Binder prepare(Context&, Step& step, const NotOfCpu auto&) {
  throw std::logic_error(step.name + " is an instruction that no CPU runs");
}

}  // namespace

Binder prepare_step(Context& context, Step& step) {
  return std::visit([&](const auto& instruction) { return prepare(context, step, instruction); },
                    step.operation);
}

}  // namespace plumb::cpu
