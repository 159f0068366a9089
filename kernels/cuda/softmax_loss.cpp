#include "kernels/cuda/binding.h"
#include "kernels/cuda/own/layers.h"

namespace plumb::cuda {

Binder prepare(Context& context, Instruction& instruction, const SoftmaxCrossEntropy& loss) {
  const SoftmaxLoss& op = context.op<SoftmaxLoss>(instruction);
  const Shape shape = context.graph.values[op.in].shape;
  instruction.workspace_bytes = static_cast<std::size_t>(shape.n) * sizeof(RowLoss);
  return launching(context, [=, d_logits_dtype = context.dtype(loss.d_logits),
                             smoothing = static_cast<float>(op.label_smoothing),
                             records = context.records](const Arena& arena, cudaStream_t stream) {
    launch_softmax_loss({.logits = arena.as<float>(loss.logits),
                         .labels = arena.as<std::int32_t>(loss.labels),
                         .d_logits = arena.data(loss.d_logits),
                         .d_logits_dtype = d_logits_dtype,
                         .state = arena.as<State>(loss.state),
                         .row_losses = arena.workspace<RowLoss>(),
                         .records = records},
                        shape.n, shape.c, smoothing, stream);
  });
}

}  // namespace plumb::cuda
