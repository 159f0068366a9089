// Loops that oneDNN has no primitive for: sums of gradients, casts. All run over whole buffers in whatever
// layout they share; padding holds zeros and stays zero.
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

float* floats(std::byte* address) {
  return reinterpret_cast<float*>(address);
}

// Every operand in the layout of the step's first one.
Call call_in_one_layout(Context& context, Step& step) {
  const dnnl::memory::desc layout = *context.layouts[step.uses[0].buffer];
  Call call(context, step);
  for (const BufferUse& use : step.uses)
    use.reads() ? call.input(0, use.buffer, layout) : call.output(0, use.buffer, layout);
  return call;
}

Finish prepare_accumulate(Context& context, Step& step) {
  const auto count = static_cast<std::ptrdiff_t>(context.floats(step.uses[0].buffer));
  return call_in_one_layout(context, step)
      .finish(Call::Body([=](const std::vector<std::byte*>& at) -> ComputeFn {
        return [=, into = floats(at[0]), from = floats(at[1])] { accumulate(into, from, count); };
      }));
}

Finish prepare_cast(Context& context, Step& step) {
  const BufferId from = step.uses[0].buffer, into = step.uses[1].buffer;
  const Buffer& source = context.program.buffers[from];
  const auto count = static_cast<std::ptrdiff_t>(source.bytes / bytes_of(source.dtype));
  const bool narrows = source.dtype == DType::f32;
  const auto scale = static_cast<float>(step.scale);
  return [=](const Arena& arena) -> ComputeFn {
    return [=, source_data = arena.data(from), target_data = arena.data(into)] {
      if (narrows)
        cast<float, _Float16>(source_data, target_data, count, scale);
      else
        cast<_Float16, float>(source_data, target_data, count, scale);
    };
  };
}

}  // namespace

Finish prepare_elementwise(Context& context, Step& step) {
  return step.kind == StepKind::accumulate ? prepare_accumulate(context, step) : prepare_cast(context, step);
}

}  // namespace plumb::cpu
