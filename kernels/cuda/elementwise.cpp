#include "kernels/cuda/elementwise.h"

#include "kernels/cuda/binding.h"

namespace plumb::cuda {
namespace {

std::int64_t elements_held(const Buffer& buffer) {
  return static_cast<std::int64_t>(buffer.bytes / bytes_of(buffer.dtype));
}

}  // namespace

Binder prepare(Context& context, Instruction&, const Accumulate& accumulate) {
  const Buffer& into = context.buffer(accumulate.into);
  return [=, stream = context.stream, dtype = into.dtype,
          count = elements_held(into)](const Arena& arena) -> ComputeFn {
    return [=, into = arena.data(accumulate.into), from = arena.data(accumulate.from)] {
      launch_accumulate(dtype, into, from, count, stream);
    };
  };
}

Binder prepare(Context& context, Instruction&, const Cast& cast) {
  const Buffer& from = context.buffer(cast.from);
  return [=, stream = context.stream, from_dtype = from.dtype, into_dtype = context.dtype(cast.into),
          count = elements_held(from)](const Arena& arena) -> ComputeFn {
    return [=, from = arena.data(cast.from), into = arena.data(cast.into)] {
      launch_cast(from_dtype, from, into_dtype, into, count, static_cast<float>(cast.scale), stream);
    };
  };
}

Binder prepare(Context& context, Instruction&, const PackBatch& pack) {
  const Shape shape = context.graph.values.front().shape;
  const Buffer& images = context.buffer(pack.images);
  const auto padded_channels = static_cast<int>(elements_held(images) / (shape.n * shape.h * shape.w));
  return [=, stream = context.stream, dtype = images.dtype](const Arena& arena) -> ComputeFn {
    const StagedBatch staged{.images = arena.as<float>(pack.staged_images),
                             .labels = arena.as<std::int32_t>(pack.staged_labels)};
    return [=, state = arena.as<State>(pack.state), images = arena.data(pack.images),
            labels = arena.as<std::int32_t>(pack.labels)] {
      launch_pack_batch(staged, state, images, labels, shape, padded_channels, dtype, stream);
    };
  };
}

}  // namespace plumb::cuda
