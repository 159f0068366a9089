#include "kernels/cuda/own/elementwise.h"

#include "kernels/cuda/binding.h"

namespace plumb::cuda {

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
  return launching(context, [=, shape = context.graph.values.front().shape,
                             dtype = context.dtype(pack.images), held = context.elements_held(pack.images),
                             layout = context.layout()](const Arena& arena, cudaStream_t stream) {
    launch_pack_batch({.pixels = arena.as<std::uint8_t>(pack.staged_images),
                       .labels = arena.as<std::int32_t>(pack.staged_labels)},
                      pack.normalization, arena.as<State>(pack.state),
                      {.images = arena.data(pack.images),
                       .labels = arena.as<std::int32_t>(pack.labels),
                       .shape = shape,
                       .held_channels = held / (shape.n * shape.h * shape.w),
                       .dtype = dtype,
                       .layout = layout},
                      stream);
  });
}

}  // namespace plumb::cuda
