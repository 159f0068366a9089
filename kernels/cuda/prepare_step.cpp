// Chooses the implementation of an instruction.
#include <concepts>
#include <stdexcept>

#include "kernels/cuda/binding.h"
#include "kernels/cuda/depthwise_shape.h"

namespace plumb::cuda {
namespace {

constexpr const char* kOwnKernels = "plumbline";

template <typename T>
concept Convolution = std::same_as<T, ConvForward> || std::same_as<T, ConvBackwardData> ||
    std::same_as<T, ConvBackwardWeights> || std::same_as<T, ConvNormBackwardData>;

Binder prepare(Context& context, Step& step, const Convolution auto&) {
  return is_depthwise(context.graph, std::get<Conv>(context.graph.ops[step.op]))
             ? prepare_depthwise(context, step)
             : prepare_conv(context, step);
}

// Steps of the runner and the communicator.
Binder prepare(Context&, Step&, const LoadBatch&) {
  return {};
}
Binder prepare(Context&, Step&, const Collective&) {
  return {};
}

// A GPU's batch norm is BatchNormStatistics and BatchNormApply.
template <typename T>
concept NotOfCuda = std::same_as<T, BatchNormForward> || std::same_as<T, Recorded>;

Binder prepare(Context&, Step& step, const NotOfCuda auto&) {
  throw std::logic_error(step.name + " is an instruction that no CUDA device runs");
}

}  // namespace

Binder prepare_step(Context& context, Step& step) {
  Binder binder = std::visit([&](const auto& instruction) { return prepare(context, step, instruction); },
                             step.operation);
  if (binder && step.engine.empty()) step.engine = kOwnKernels;
  return binder;
}

}  // namespace plumb::cuda
