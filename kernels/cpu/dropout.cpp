// Dropout: random bits depend only on the image's global index and the element's c, h, w index in the image,
// not on layout or number of ranks.
#include "models/dropout.h"

#include <algorithm>
#include <array>

#include "kernels/cpu/binding.h"
#include "kernels/cpu/element_types.h"

namespace plumb::cpu {
namespace {

constexpr std::int64_t kBlocks = 256;  // of four elements each; one thread's task
using Factors = std::array<std::array<float, kBlocks>, 4>;

// Factors (0 or keep_scale) for the elements of blocks first_block … of an image.
void make_factors(const DropoutRule& rule, const StepState& step, std::uint64_t sample,
                  std::int64_t first_block, Factors& factors) {
  const std::uint64_t iteration = step.iteration;
#pragma omp simd
  for (std::int64_t block = 0; block < kBlocks; ++block) {
    const PhiloxBlock bits =
        dropout_bits(rule.key, iteration, sample, static_cast<std::uint32_t>(first_block + block));
    for (std::size_t word = 0; word < 4; ++word)
      factors[word][static_cast<std::size_t>(block)] = bits[word] < rule.threshold ? 0 : rule.keep_scale;
  }
}

template <typename T>
void clear_padding(const ChannelLayout& layout, T* image) {
  for (std::int64_t channel = layout.channels; channel < layout.blocks() * layout.block; ++channel)
    for (std::int64_t pixel = 0; pixel < layout.pixels; ++pixel) image[layout.offset(channel, pixel)] = T{};
}

template <typename T>
void dropout(const ChannelLayout& layout, const T* all_from, T* all_into, const DropoutRule& rule,
             const StepState& step) {
  const std::int64_t elements = layout.channels * layout.pixels;
  const std::int64_t parts = (elements + 4 * kBlocks - 1) / (4 * kBlocks);
#pragma omp parallel for schedule(static)
  for (std::int64_t item = 0; item < layout.images * parts; ++item) {
    const std::int64_t image = item / parts, first = item % parts * 4 * kBlocks;
    Factors factors;
    make_factors(rule, step, step.first_sample + static_cast<std::uint64_t>(image), first / 4, factors);
    const T* from = all_from + image * layout.image_stride();
    T* into = all_into + image * layout.image_stride();
    std::int64_t channel = first / layout.pixels, pixel = first % layout.pixels;
    for (std::int64_t i = 0; i < std::min(4 * kBlocks, elements - first); ++i) {
      const std::int64_t offset = layout.offset(channel, pixel);
      const float factor = factors[static_cast<std::size_t>(i % 4)][static_cast<std::size_t>(i / 4)];
      into[offset] = from_float<T>(factor * to_float(from[offset]));
      if (++pixel < layout.pixels) continue;
      pixel = 0;
      ++channel;
    }
    if (first == 0) clear_padding(layout, into);
  }
}

Binder drop(Context& context, Instruction& instruction, BufferId from, BufferId into, BufferId state) {
  const Dropout& op = context.op<Dropout>(instruction);
  const DType dtype = context.dtype(from);
  const dnnl::memory::desc plain = plain_layout(nchw(context.graph.values[op.in].shape), dtype);
  dnnl::memory::desc layout = context.settle(context.tensors().values[op.in], plain);
  if (!channel_layout(layout)) layout = plain;
  Call call(context, instruction);
  const auto in = call.input(0, from, layout), out = call.output(0, into, layout);
  return with_type_of(dtype, [&]<typename T>(T) {
    return call.finish([=, form = *channel_layout(layout),
                        rule = dropout_rule(op.seed, op.name, op.probability)](const BoundOperands& at) {
      dropout(form, at.as<const T>(in), at.as<T>(out), rule, at.arena.as<State>(state)->step);
    });
  });
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const DropoutForward& dropout) {
  return drop(context, instruction, dropout.in, dropout.out, dropout.state);
}
Binder prepare(Context& context, Instruction& instruction, const DropoutBackward& dropout) {
  return drop(context, instruction, dropout.d_out, dropout.d_in, dropout.state);
}

}  // namespace plumb::cpu
