#include "kernels/cuda/elementwise.h"

#include "kernels/cuda/binding.h"

namespace plumb::cuda {
namespace {

std::int64_t elements_held(const Buffer& buffer) {
  return static_cast<std::int64_t>(buffer.bytes / bytes_of(buffer.dtype));
}

Finish prepare_accumulate(const Context& context, const Step& step) {
  const Buffer& into = context.buffer(step, 0);
  return [uses = step.uses, stream = context.stream, dtype = into.dtype,
          count = elements_held(into)](const Arena& arena) -> ComputeFn {
    return [=, into = arena.data(uses[0].buffer), from = arena.data(uses[1].buffer)] {
      launch_accumulate(dtype, into, from, count, stream);
    };
  };
}

Finish prepare_cast(const Context& context, const Step& step) {
  const Buffer &from = context.buffer(step, 0), &into = context.buffer(step, 1);
  return
      [uses = step.uses, stream = context.stream, from_dtype = from.dtype, into_dtype = into.dtype,
       count = elements_held(from), scale = static_cast<float>(step.scale)](const Arena& arena) -> ComputeFn {
        return [=, from = arena.data(uses[0].buffer), into = arena.data(uses[1].buffer)] {
          launch_cast(from_dtype, from, into_dtype, into, count, scale, stream);
        };
      };
}

Finish prepare_pack_batch(const Context& context, const Step& step) {
  const Shape shape = context.graph.values.front().shape;
  const Buffer& images = context.buffer(step, 3);
  const auto padded_channels = static_cast<int>(elements_held(images) / (shape.n * shape.h * shape.w));
  return
      [=, uses = step.uses, stream = context.stream, dtype = images.dtype](const Arena& arena) -> ComputeFn {
        const StagedBatch staged{.images = arena.as<float>(uses[0].buffer),
                                 .labels = arena.as<std::int32_t>(uses[1].buffer)};
        const auto* state = arena.as<State>(uses[2].buffer);
        auto* labels = arena.as<std::int32_t>(uses[4].buffer);
        return [=, images = arena.data(uses[3].buffer)] {
          launch_pack_batch(staged, state, images, labels, shape, padded_channels, dtype, stream);
        };
      };
}

}  // namespace

Finish prepare_elementwise(Context& context, Step& step) {
  switch (step.kind) {
    case StepKind::pack_batch:
      return prepare_pack_batch(context, step);
    case StepKind::accumulate:
      return prepare_accumulate(context, step);
    default:
      return prepare_cast(context, step);
  }
}

}  // namespace plumb::cuda
