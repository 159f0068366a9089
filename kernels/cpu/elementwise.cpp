// Elementwise loops without a oneDNN primitive: sums of gradients, casts. Operands share one layout, and
// loops run over whole buffers; padding stays zero.
#include "kernels/cpu/binding.h"

namespace plumb::cpu {
namespace {

void accumulate(float* into, const float* from, std::ptrdiff_t count) {
#pragma omp parallel for simd schedule(static)
  for (std::ptrdiff_t i = 0; i < count; ++i) into[i] += from[i];
}

template <typename From, typename To>
void cast(const From* from, To* to, std::ptrdiff_t count, float scale) {
#pragma omp parallel for simd schedule(static)
  for (std::ptrdiff_t i = 0; i < count; ++i) to[i] = static_cast<To>(scale * static_cast<float>(from[i]));
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const Accumulate& accumulated) {
  const dnnl::memory::desc layout = *context.layouts[accumulated.into];
  Call call(context, instruction);
  const auto into = call.updated(accumulated.into, layout), from = call.input(accumulated.from, layout);
  const auto count = static_cast<std::ptrdiff_t>(context.floats(accumulated.into));
  return call.finish([=](const BoundOperands& at) { accumulate(at.as(into), at.as(from), count); });
}

Binder prepare(Context& context, Instruction&, const Cast& rounded) {
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

}  // namespace plumb::cpu
