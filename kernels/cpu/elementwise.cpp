// Elementwise loops without a oneDNN primitive: sums of gradients, casts. Operands share one layout, and
// loops run over whole buffers; padding stays zero.
#include <cstring>

#include "kernels/cpu/binding.h"

namespace plumb::cpu {
namespace {

void accumulate(float* into, const float* from, std::ptrdiff_t count) {
#pragma omp parallel for simd schedule(static)
  for (std::ptrdiff_t i = 0; i < count; ++i) into[i] += from[i];
}

template <typename From, typename To>
void cast(const std::byte* from, std::byte* to, std::ptrdiff_t count, float scale) {
  const auto* source = reinterpret_cast<const From*>(from);
  auto* target = reinterpret_cast<To*>(to);
#pragma omp parallel for simd schedule(static)
  for (std::ptrdiff_t i = 0; i < count; ++i)
    target[i] = static_cast<To>(scale * static_cast<float>(source[i]));
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const Accumulate& accumulated) {
  const dnnl::memory::desc layout = *context.layouts[accumulated.into];
  Call call(context, instruction);
  const auto into = call.updated(accumulated.into, layout), from = call.input(accumulated.from, layout);
  const auto count = static_cast<std::ptrdiff_t>(context.floats(accumulated.into));
  return call.finish(Call::Body([=](const Addresses& addresses) -> ComputeFn {
    return [=, into = addresses.as(into), from = addresses.as(from)] { accumulate(into, from, count); };
  }));
}

Binder prepare(Context& context, Instruction&, const Cast& rounded) {
  const Buffer& source = context.program.buffers[rounded.from];
  const auto count = static_cast<std::ptrdiff_t>(source.bytes / bytes_of(source.dtype));
  return [=, narrows = source.dtype == DType::f32,
          scale = static_cast<float>(rounded.scale)](const Arena& arena) -> ComputeFn {
    return [=, from = arena.data(rounded.from), into = arena.data(rounded.into)] {
      if (narrows)
        cast<float, _Float16>(from, into, count, scale);
      else
        cast<_Float16, float>(from, into, count, scale);
    };
  };
}

}  // namespace plumb::cpu
