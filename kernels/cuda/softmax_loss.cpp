#include "kernels/cuda/softmax_loss.h"

#include "kernels/cuda/binding.h"

namespace plumb::cuda {

Finish prepare_softmax_loss(Context& context, Step& step) {
  const SoftmaxLoss& op = std::get<SoftmaxLoss>(context.graph.ops[step.op]);
  const Shape shape = context.graph.values[op.in].shape;
  step.workspace_bytes = static_cast<std::size_t>(shape.n) * sizeof(RowLoss);
  return [=, uses = step.uses, lane = step.lane, d_logits_dtype = context.buffer(step, 2).dtype,
          smoothing = static_cast<float>(op.label_smoothing), records = context.records,
          stream = context.stream](const Arena& arena) -> ComputeFn {
    const SoftmaxOperands at{.logits = arena.as<float>(uses[0].buffer),
                             .labels = arena.as<std::int32_t>(uses[1].buffer),
                             .d_logits = arena.data(uses[2].buffer),
                             .d_logits_dtype = d_logits_dtype,
                             .state = arena.as<State>(uses[3].buffer),
                             .row_losses = reinterpret_cast<RowLoss*>(arena.workspace(lane)),
                             .records = records};
    return [=] { launch_softmax_loss(at, shape.n, shape.c, smoothing, stream); };
  };
}

}  // namespace plumb::cuda
