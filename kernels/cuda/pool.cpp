#include "kernels/cuda/pool.h"

#include <stdexcept>

#include "kernels/cuda/binding.h"

namespace plumb::cuda {
namespace {

constexpr int kLargestKernel = 16;  // the place in a window is one byte

PoolShape shape_of(const Graph& graph, const Pool& op) {
  const Shape &in = graph.values[op.in].shape, &out = graph.values[op.out].shape;
  return {.n = in.n,
          .h = in.h,
          .w = in.w,
          .c = in.c,
          .out_h = out.h,
          .out_w = out.w,
          .kernel = op.kernel,
          .stride = op.stride,
          .padding = op.padding};
}

Finish prepare_max(const Context& context, const Step& step, const Pool& op) {
  if (op.kernel > kLargestKernel || step.uses.size() < 3)
    throw std::logic_error(step.name + ": a max pool wants a kernel of at most 16 and room for the argmax");
  const bool forward = step.kind == StepKind::pool_forward, has_optional = step.uses.size() > 3;
  return [=, uses = step.uses, shape = shape_of(context.graph, op), stream = context.stream,
          dtype = context.buffer(step, 0).dtype](const Arena& arena) -> ComputeFn {
    return [=, from = arena.data(uses[0].buffer), into = arena.data(uses[1].buffer),
            argmax = arena.as<std::uint8_t>(uses[2].buffer),
            optional = has_optional ? arena.data(uses[3].buffer) : nullptr] {
      if (forward)
        launch_max_pool_forward(dtype, shape, from, reinterpret_cast<const float*>(optional), into, argmax,
                                stream);
      else
        launch_max_pool_backward(dtype, shape, from, optional, argmax, into, stream);
    };
  };
}

Finish prepare_average(const Context& context, const Step& step, const Pool& op) {
  const bool forward = step.kind == StepKind::pool_forward;
  return [=, uses = step.uses, in = context.graph.values[op.in].shape, stream = context.stream,
          dtype = context.buffer(step, 0).dtype](const Arena& arena) -> ComputeFn {
    return [=, from = arena.data(uses[0].buffer), into = arena.data(uses[1].buffer)] {
      if (forward)
        launch_average_forward(dtype, from, into, in.n, in.h * in.w, in.c, stream);
      else
        launch_average_backward(dtype, from, into, in.n, in.h * in.w, in.c, stream);
    };
  };
}

}  // namespace

Finish prepare_pool(Context& context, Step& step) {
  const Pool& op = std::get<Pool>(context.graph.ops[step.op]);
  return op.kind == Pool::Kind::max ? prepare_max(context, step, op) : prepare_average(context, step, op);
}

}  // namespace plumb::cuda
