#include "kernels/cuda/dropout.h"

#include "kernels/cuda/binding.h"

namespace plumb::cuda {

// dropout_forward and dropout_backward have what goes in, the state and what comes out at the same places.
Finish prepare_dropout(Context& context, Step& step) {
  const Dropout& op = std::get<Dropout>(context.graph.ops[step.op]);
  step.workspace_bytes = 0;
  DropoutTensors tensors{.in_dtype = context.buffer(step, 0).dtype,
                         .out_dtype = context.buffer(step, 2).dtype,
                         .shape = context.graph.values[op.in].shape};
  return [=, rule = dropout_rule(op.seed, op.name, op.probability), uses = step.uses,
          stream = context.stream](const Arena& arena) -> ComputeFn {
    DropoutTensors at = tensors;
    at.in = arena.data(uses[0].buffer);
    at.out = arena.data(uses[2].buffer);
    return [=, state = arena.as<State>(uses[1].buffer)] { launch_dropout(at, rule, state, stream); };
  };
}

}  // namespace plumb::cuda
