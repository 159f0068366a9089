// Loops that oneDNN has no primitive for: the end of a residual block in one pass each way, sums of
// gradients, casts. All run over whole buffers in whatever layout they share; padding holds zeros and stays
// zero.
#include <cstring>

#include "kernels/cpu/binding.h"

namespace plumb::cpu {
namespace {

// Reads 8, writes 4 bytes per element.
void add_relu_forward(float* out, const float* residual, std::ptrdiff_t count) {
#pragma omp parallel for simd schedule(static)
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const float sum = out[i] + residual[i];
    out[i] = sum > 0 ? sum : 0;
  }
}

// Reads 12 (8 without `second`), writes 4 bytes per element.
void add_relu_backward(const float* out, const float* first, const float* second, float* d_in,
                       std::ptrdiff_t count) {
#pragma omp parallel for simd schedule(static)
  for (std::ptrdiff_t i = 0; i < count; ++i) d_in[i] = out[i] > 0 ? first[i] + second[i] : 0;
}
void relu_backward(const float* out, const float* d_out, float* d_in, std::ptrdiff_t count) {
#pragma omp parallel for simd schedule(static)
  for (std::ptrdiff_t i = 0; i < count; ++i) d_in[i] = out[i] > 0 ? d_out[i] : 0;
}

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

Finish prepare_add_relu_forward(Context& context, Step& step) {
  const auto count = static_cast<std::ptrdiff_t>(context.floats(step.uses[0].buffer));
  return call_in_one_layout(context, step)
      .finish(Call::Body([=](const std::vector<std::byte*>& at) -> ComputeFn {
        return [=, out = floats(at[0]), residual = floats(at[1])] { add_relu_forward(out, residual, count); };
      }));
}

Finish prepare_add_relu_backward(Context& context, Step& step) {
  const auto count = static_cast<std::ptrdiff_t>(context.floats(step.uses[0].buffer));
  return call_in_one_layout(context, step)
      .finish(Call::Body([=](const std::vector<std::byte*>& at) -> ComputeFn {
        const float *out = floats(at[0]), *first = floats(at[1]);
        float* d_in = floats(at.back());
        if (at.size() == 3) return [=] { relu_backward(out, first, d_in, count); };
        return [=, second = floats(at[2])] { add_relu_backward(out, first, second, d_in, count); };
      }));
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
  switch (step.kind) {
    case StepKind::add_relu_forward:
      return prepare_add_relu_forward(context, step);
    case StepKind::add_relu_backward:
      return prepare_add_relu_backward(context, step);
    case StepKind::accumulate:
      return prepare_accumulate(context, step);
    default:
      return prepare_cast(context, step);
  }
}

}  // namespace plumb::cpu
