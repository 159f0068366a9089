// Instructions that call one launcher of our own kernels: pooling, dropout, the softmax loss, batches, sums
// and casts.
#include "kernels/cuda/own/layers.h"

#include "kernels/cuda/binding.h"
#include "kernels/cuda/own/elementwise.h"

namespace plumb::cuda {
namespace {

Binder drop(Context& context, Instruction& instruction, BufferId from, BufferId into, BufferId state) {
  const Dropout& op = context.op<Dropout>(instruction);
  return launching(context, [=, shape = context.graph.values[op.in].shape,
                             rule = dropout_rule(op.seed, op.name, op.probability),
                             dtype = context.dtype(from)](const Arena& arena, cudaStream_t stream) {
    launch_dropout(dtype, shape, arena.data(from), arena.data(into), rule, arena.as<State>(state), stream);
  });
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const PoolForward& pool) {
  const Pool& op = context.op<Pool>(instruction);
  return launching(context, [=, is_max = op.kind == Pool::Kind::max, shape = window_shape(context.graph, op),
                             dtype = context.dtype(pool.in)](const Arena& arena, cudaStream_t stream) {
    if (is_max)
      launch_max_pool_forward(dtype, shape, arena.data(pool.in), arena.optional<float>(pool.scale_shift),
                              arena.data(pool.out), arena.optional<std::uint8_t>(pool.argmax),
                              arena.optional(pool.winners), stream);
    else
      launch_average_forward(dtype, shape, arena.data(pool.in), arena.data(pool.out), stream);
  });
}

// Average pools only: the norm in front of a max pool goes back through it.
Binder prepare(Context& context, Instruction& instruction, const PoolBackward& pool) {
  return launching(context, [=, shape = window_shape(context.graph, context.op<Pool>(instruction)),
                             dtype = context.dtype(pool.d_out)](const Arena& arena, cudaStream_t stream) {
    launch_average_backward(dtype, shape, arena.data(pool.d_out), arena.data(pool.d_in), stream);
  });
}

Binder prepare(Context& context, Instruction& instruction, const DropoutForward& dropout) {
  return drop(context, instruction, dropout.in, dropout.out, dropout.state);
}
Binder prepare(Context& context, Instruction& instruction, const DropoutBackward& dropout) {
  return drop(context, instruction, dropout.d_out, dropout.d_in, dropout.state);
}

Binder prepare(Context& context, Instruction& instruction, const SoftmaxCrossEntropy& loss) {
  const SoftmaxLoss& op = context.op<SoftmaxLoss>(instruction);
  const Shape shape = context.graph.values[op.in].shape;
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

Binder prepare(Context& context, Instruction&, const Accumulate& accumulate) {
  return launching(
      context, [=, dtype = context.dtype(accumulate.into), count = context.elements_held(accumulate.into)](
                   const Arena& arena, cudaStream_t stream) {
        launch_accumulate(dtype, arena.data(accumulate.into), arena.data(accumulate.from), count, stream);
      });
}

Binder prepare(Context& context, Instruction&, const Cast& cast) {
  return launching(context,
                   [=, from_dtype = context.dtype(cast.from), into_dtype = context.dtype(cast.into),
                    count = context.elements_held(cast.from)](const Arena& arena, cudaStream_t stream) {
                     launch_cast(from_dtype, arena.data(cast.from), into_dtype, arena.data(cast.into), count,
                                 static_cast<float>(cast.scale), stream);
                   });
}

Binder prepare(Context& context, Instruction&, const PackBatch& pack) {
  return launching(context,
                   [=, shape = context.graph.values.front().shape, dtype = context.dtype(pack.images),
                    held = context.elements_held(pack.images)](const Arena& arena, cudaStream_t stream) {
                     launch_pack_batch({.pixels = arena.as<std::uint8_t>(pack.staged_images),
                                        .labels = arena.as<std::int32_t>(pack.staged_labels)},
                                       pack.normalization, arena.as<State>(pack.state),
                                       {.images = arena.data(pack.images),
                                        .labels = arena.as<std::int32_t>(pack.labels),
                                        .shape = shape,
                                        .held_channels = held / (shape.n * shape.h * shape.w),
                                        .dtype = dtype},
                                       stream);
                   });
}

}  // namespace plumb::cuda
