#include "kernels/cuda/dropout.h"

#include "kernels/cuda/binding.h"

namespace plumb::cuda {
namespace {

Binder drop(Context& context, Instruction& instruction, BufferId from, BufferId into, BufferId state) {
  const Dropout& op = std::get<Dropout>(context.graph.ops[instruction.op]);
  instruction.workspace_bytes = 0;
  const DropoutTensors tensors{.in_dtype = context.dtype(from),
                               .out_dtype = context.dtype(into),
                               .shape = context.graph.values[op.in].shape};
  return [=, rule = dropout_rule(op.seed, op.name, op.probability),
          stream = context.stream](const Arena& arena) -> ComputeFn {
    DropoutTensors at = tensors;
    at.in = arena.data(from);
    at.out = arena.data(into);
    return [=, state = arena.as<State>(state)] { launch_dropout(at, rule, state, stream); };
  };
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const DropoutForward& dropout) {
  return drop(context, instruction, dropout.in, dropout.out, dropout.state);
}
Binder prepare(Context& context, Instruction& instruction, const DropoutBackward& dropout) {
  return drop(context, instruction, dropout.d_out, dropout.d_in, dropout.state);
}

}  // namespace plumb::cuda
