// Elementwise loops without a oneDNN primitive: sums of gradients, casts, normalized pixels. But for the
// latter, operands share one layout and loops run over whole buffers; padding stays zero.
#include <algorithm>

#include "kernels/cpu/binding.h"
#include "kernels/cpu/element_types.h"
#include "kernels/cpu/onednn.h"

namespace plumb::cpu {
namespace {

template <typename T>
void accumulate(T* into, const T* from, std::ptrdiff_t count) {
#pragma omp parallel for simd schedule(static)
  for (std::ptrdiff_t i = 0; i < count; ++i) into[i] = from_float<T>(to_float(into[i]) + to_float(from[i]));
}

template <typename From, typename To>
void cast(const From* from, To* to, std::ptrdiff_t count, float scale) {
#pragma omp parallel for simd schedule(static)
  for (std::ptrdiff_t i = 0; i < count; ++i) to[i] = static_cast<To>(scale * static_cast<float>(from[i]));
}

// [images, pixels, 3] to [images, 3, pixels]
template <typename T>
void normalize(const std::uint8_t* from, T* to, std::ptrdiff_t images, std::ptrdiff_t pixels,
               const Normalization& normalization) {
#pragma omp parallel for collapse(2) schedule(static)
  for (std::ptrdiff_t n = 0; n < images; ++n)
    for (std::ptrdiff_t c = 0; c < 3; ++c) {
      const float factor = normalization.factor[c], offset = normalization.offset[c];
      const std::uint8_t* channel = from + n * pixels * 3 + c;
      T* plane = to + (n * 3 + c) * pixels;
      for (std::ptrdiff_t i = 0; i < pixels; ++i)
        plane[i] = from_float<T>(static_cast<float>(channel[i * 3]) * factor + offset);
    }
}

Binder prepare_conversion(Context& context, Instruction& instruction, const Cast& rounded) {
  const Buffer& source = context.program.buffers[rounded.from];
  const auto& held = context.layouts[rounded.from];
  const std::vector<std::int64_t> dims = held ? dims_of(*held) : source.dims;
  const auto from = plain_layout(dims, source.dtype), into = plain_layout(dims, context.dtype(rounded.into));
  Call call(context, instruction);
  call.input(DNNL_ARG_FROM, rounded.from, from);
  call.output(DNNL_ARG_TO, rounded.into, into);
  return call.finish<dnnl::reorder>({context.engine, from, context.engine, into});
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const Accumulate& accumulated) {
  const dnnl::memory::desc layout = *context.layouts[accumulated.into];
  Call call(context, instruction);
  const auto into = call.updated(accumulated.into, layout), from = call.input(accumulated.from, layout);
  const auto count = static_cast<std::ptrdiff_t>(context.elements(accumulated.into));
  return with_type_of(context.dtype(accumulated.into), [&]<typename T>(T) {
    return call.finish([=](const BoundOperands& at) { accumulate(at.as<T>(into), at.as<T>(from), count); });
  });
}

// Converts a layer's operand, or a bucket of gradients.
Binder prepare(Context& context, Instruction& instruction, const Cast& rounded) {
  if (instruction.op != kNone) return prepare_conversion(context, instruction, rounded);
  const Buffer& source = context.program.buffers[rounded.from];
  const auto count = static_cast<std::ptrdiff_t>(source.bytes / bytes_of(source.dtype));
  return bind_loop(
      [=, narrows = source.dtype == DType::f32, scale = static_cast<float>(rounded.scale)](const Arena& at) {
        if (narrows)
          cast(at.as(rounded.from), at.as<_Float16>(rounded.into), count, scale);
        else
          cast(at.as<_Float16>(rounded.from), at.as(rounded.into), count, scale);
      });
}

// The device has settled row-major images before.
Binder prepare(Context& context, Instruction&, const PackBatch& pack) {
  const Shape& shape = context.graph.values[0].shape;
  return with_type_of(context.dtype(pack.images), [&]<typename T>(T) {
    return bind_loop([=, images = shape.n, pixels = shape.h * shape.w](const Arena& at) {
      normalize(at.as<std::uint8_t>(pack.staged_images), at.as<T>(pack.images), images, pixels,
                pack.normalization);
      std::copy_n(at.as<std::int32_t>(pack.staged_labels), images, at.as<std::int32_t>(pack.labels));
    });
  });
}

}  // namespace plumb::cpu
