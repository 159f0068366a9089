#include "kernels/cuda/binding.h"
#include "kernels/cuda/own/layers.h"

namespace plumb::cuda {
namespace {

Binder drop(Context& context, Instruction& instruction, BufferId from, BufferId into, BufferId state) {
  const Dropout& op = context.op<Dropout>(instruction);
  Shape shape = context.graph.values[op.in].shape;
  // The kernel counts elements in the order c, h, w. NCHW has them in that order: like channels of one pixel,
  // each of which takes a random block for itself.
  if (context.layout() == TensorLayout::nchw) shape = {.n = shape.n, .c = shape.c * shape.h * shape.w};
  return launching(context, [=, rule = dropout_rule(op.seed, op.name, op.probability),
                             dtype = context.dtype(from)](const Arena& arena, cudaStream_t stream) {
    launch_dropout(dtype, shape, arena.data(from), arena.data(into), rule, arena.as<State>(state), stream);
  });
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const DropoutForward& dropout) {
  return drop(context, instruction, dropout.in, dropout.out, dropout.state);
}
Binder prepare(Context& context, Instruction& instruction, const DropoutBackward& dropout) {
  return drop(context, instruction, dropout.d_out, dropout.d_in, dropout.state);
}

}  // namespace plumb::cuda
