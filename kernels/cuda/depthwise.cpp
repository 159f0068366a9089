// Steps of depthwise convolutions: kernels of our own, which need no plan.
#include "kernels/cuda/depthwise.h"

#include <stdexcept>

#include "kernels/cuda/binding.h"

namespace plumb::cuda {

Finish prepare_depthwise(Context& context, Step& step) {
  const Conv& op = std::get<Conv>(context.graph.ops[step.op]);
  const DType dtype = context.buffer(step, 0).dtype, out_dtype = context.buffer(step, 2).dtype;
  const DepthwiseShape shape = depthwise_shape(context.graph, op);
  const ConvFusion& fusion = step.fusion;
  if (!is_depthwise(context.graph, op) || op.in == 0 || fusion.normalizes_input || fusion.gathers_statistics)
    throw std::logic_error(step.name + " isn't a plain depthwise convolution behind another layer");
  step.workspace_bytes =
      step.kind == StepKind::conv_backward_weights ? depthwise_workspace_bytes(shape, dtype) : 0;
  return [=, kind = step.kind, uses = step.uses, lane = step.lane,
          stream = context.stream](const Arena& arena) -> ComputeFn {
    return
        [=, first = arena.data(uses.at(0).buffer), second = arena.data(uses.at(1).buffer),
         into = arena.data(uses.at(2).buffer), partials = reinterpret_cast<float*>(arena.workspace(lane))] {
          if (kind == StepKind::conv_forward)
            launch_depthwise_forward(dtype, shape, first, second, into, stream);
          else if (kind == StepKind::conv_backward_data)
            launch_depthwise_backward_data(dtype, shape, first, second, into, stream);
          else
            launch_depthwise_backward_weights(dtype, shape, first, second, partials, out_dtype, into, stream);
        };
  };
}

}  // namespace plumb::cuda
