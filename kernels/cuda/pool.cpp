#include "kernels/cuda/binding.h"
#include "kernels/cuda/own/layers.h"

namespace plumb::cuda {

Binder prepare(Context& context, Instruction& instruction, const PoolForward& pool) {
  const Pool& op = context.op<Pool>(instruction);
  return launching(context, [=, is_max = op.kind == Pool::Kind::max, shape = window_shape(context.graph, op),
                             layout = context.layout(),
                             dtype = context.dtype(pool.in)](const Arena& arena, cudaStream_t stream) {
    if (is_max)
      launch_max_pool_forward(dtype, layout, shape, arena.data(pool.in),
                              arena.optional<float>(pool.scale_shift), arena.data(pool.out),
                              arena.optional<std::uint8_t>(pool.argmax), arena.optional(pool.winners),
                              stream);
    else
      launch_average_forward(dtype, layout, shape, arena.data(pool.in), arena.data(pool.out), stream);
  });
}

Binder prepare(Context& context, Instruction& instruction, const PoolBackward& pool) {
  const Pool& op = context.op<Pool>(instruction);
  return launching(context, [=, is_max = op.kind == Pool::Kind::max, shape = window_shape(context.graph, op),
                             layout = context.layout(),
                             dtype = context.dtype(pool.d_out)](const Arena& arena, cudaStream_t stream) {
    if (is_max)
      launch_max_pool_backward(dtype, layout, shape, arena.data(pool.d_out),
                               arena.optional(pool.second_d_out), arena.optional<std::uint8_t>(pool.argmax),
                               arena.data(pool.d_in), stream);
    else
      launch_average_backward(dtype, layout, shape, arena.data(pool.d_out), arena.data(pool.d_in), stream);
  });
}

}  // namespace plumb::cuda
