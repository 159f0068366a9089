// The update of one parameter or of its sampled rows: v = mu v + (s g + wd w); sgd: w -= lr v;
// nag: w -= lr ((s g + wd w) + mu v). Source: PyTorch's torch.optim.SGD with dampening 0 (nesterov=True for
// nag). s is StepState::gradient_scale.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>

#include "kernels/cpu/binding.h"
#include "kernels/cpu/element_types.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/threads.h"

namespace plumb::cpu {
namespace {

struct UpdatedTensors {
  float* weight = nullptr;
  float* momentum = nullptr;
  const float* gradient = nullptr;
  std::ptrdiff_t count = 0;
};

struct Coefficients {
  float momentum = 0, weight_decay = 0, learning_rate = 0, gradient_scale = 1;
  bool nesterov = false;
};

constexpr std::ptrdiff_t kPart = 4096;

// One thread's part. Reads 12, writes 8 bytes per element. Pointers and coefficients are passed by value:
// possible aliasing with the writes would prevent vectorization.
void update_part(float* weight, float* momentum, const float* gradient, std::ptrdiff_t count,
                 Coefficients by) {
#pragma omp simd
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const float slope = by.gradient_scale * gradient[i] + by.weight_decay * weight[i];
    const float velocity = by.momentum * momentum[i] + slope;
    momentum[i] = velocity;
    weight[i] -= by.learning_rate * (by.nesterov ? slope + by.momentum * velocity : velocity);
  }
}

void update(const UpdatedTensors& at, const Coefficients& by) {
#pragma omp parallel for schedule(static) if (at.count >= kWorthThreads)
  for (std::ptrdiff_t i = 0; i < at.count; i += kPart)
    update_part(at.weight + i, at.momentum + i, at.gradient + i, std::min(kPart, at.count - i), by);
}

// A convolution's weight as oneDNN blocks it: the master in OIhw16i16o; copies in bf16 with the blocks in any
// order, likewise (for Winograd's passes) or with pairs of input or of output channels side by side (8i16o2i,
// 8o16i2o).
enum class Paired { no, inputs, outputs };
constexpr std::int64_t kSquareSide = 16, kSquare = kSquareSide * kSquareSide;

struct BlockedCopy {
  BufferId buffer = kNone;
  std::array<std::int64_t, 4> strides{};  // elements between blocks along o, i, h, w
  Paired paired = Paired::no;
};

struct BlockedWeight {
  std::array<std::int64_t, 4> blocks{};  // along o, i, h, w
  std::vector<BlockedCopy> copies;
};

void copy_block(const float* from, std::uint32_t* into, Paired paired) {
  std::uint16_t halves[kSquare];
#pragma omp simd
  for (std::int64_t at = 0; at < kSquare; ++at) halves[at] = from_float<Bf16>(from[at]).bits;
  if (paired == Paired::no) {
    std::memcpy(into, halves, sizeof(halves));
  } else if (paired == Paired::outputs) {
    std::uint32_t pairs[kSquare / 2];  // [i][o / 2]
    std::memcpy(pairs, halves, sizeof(pairs));
    for (std::int64_t o = 0; o < kSquareSide / 2; ++o)
#pragma omp simd
      for (std::int64_t i = 0; i < kSquareSide; ++i)
        into[o * kSquareSide + i] = pairs[i * kSquareSide / 2 + o];
  } else {
    for (std::int64_t i = 0; i < kSquareSide; i += 2)
#pragma omp simd
      for (std::int64_t o = 0; o < kSquareSide; ++o)
        into[i / 2 * kSquareSide + o] =
            halves[i * kSquareSide + o] | std::uint32_t{halves[(i + 1) * kSquareSide + o]} << 16;
  }
}

// Copies each block while it is in the cache.
void update_blocks(const UpdatedTensors& at, const Coefficients& by, const BlockedWeight& form,
                   const Arena& arena) {
  const std::int64_t all_o = form.blocks[0], all_i = form.blocks[1], all_h = form.blocks[2],
                     all_w = form.blocks[3];
#pragma omp parallel for collapse(2) schedule(static) if (at.count >= kWorthThreads)
  for (std::int64_t o = 0; o < all_o; ++o)
    for (std::int64_t i = 0; i < all_i; ++i)
      for (std::int64_t h = 0; h < all_h; ++h)
        for (std::int64_t w = 0; w < all_w; ++w) {
          const std::ptrdiff_t begin = (((o * all_i + i) * all_h + h) * all_w + w) * kSquare;
          update_part(at.weight + begin, at.momentum + begin, at.gradient + begin, kSquare, by);
          for (const BlockedCopy& copy : form.copies)
            copy_block(at.weight + begin,
                       arena.as<std::uint32_t>(copy.buffer) + (o * copy.strides[0] + i * copy.strides[1] +
                                                               h * copy.strides[2] + w * copy.strides[3]) /
                                                                  2,
                       copy.paired);
        }
}

// Row i of the gradient belongs to row rows[i] of weight and momentum; all rows are distinct.
void update_rows(const UpdatedTensors& at, std::span<const std::int32_t> rows, std::ptrdiff_t columns,
                 const Coefficients& by) {
  const auto count = static_cast<std::ptrdiff_t>(rows.size());
#pragma omp parallel for schedule(static) if (count * columns >= kWorthThreads)
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    if (i + kRowsAhead < count) {
      const std::ptrdiff_t ahead = rows[static_cast<std::size_t>(i + kRowsAhead)] * columns;
      prefetch_row(at.weight + ahead, columns);
      prefetch_row(at.momentum + ahead, columns);
    }
    const std::ptrdiff_t row = rows[static_cast<std::size_t>(i)] * columns;
    update_part(at.weight + row, at.momentum + row, at.gradient + i * columns, columns, by);
  }
}

Coefficients coefficients_of(const UpdateRule& rule, bool decays, const StepState& state) {
  return {.momentum = static_cast<float>(rule.momentum),
          .weight_decay = static_cast<float>(decays ? rule.weight_decay : 0),
          .learning_rate = state.learning_rate,
          .gradient_scale = state.gradient_scale,
          .nesterov = rule.optimizer == Optimizer::nag};
}

bool has_blocks(const dnnl::memory::desc& layout, const std::vector<Blocking::Block>& wanted) {
  return dims_of(layout).size() == 4 && blocking_of(layout).blocks == wanted;
}

// Empty for layouts that copy_block doesn't make.
std::optional<Paired> pairs_of(const dnnl::memory::desc& layout) {
  if (has_blocks(layout, {{1, kSquareSide}, {0, kSquareSide}})) return Paired::no;
  if (has_blocks(layout, {{1, kSquareSide / 2}, {0, kSquareSide}, {1, 2}})) return Paired::inputs;
  if (has_blocks(layout, {{0, kSquareSide / 2}, {1, kSquareSide}, {0, 2}})) return Paired::outputs;
  return std::nullopt;
}

// Empty for other layouts, or without a copy.
std::optional<BlockedWeight> blocked_weight(const Context& context, const UpdatedParameter& updated) {
  const dnnl::memory::desc& master = *context.layouts[updated.master];
  if (updated.copies.empty() || pairs_of(master) != Paired::no) return std::nullopt;
  const dnnl::memory::dims dims = dims_of(master);
  BlockedWeight form{.blocks = {dims[0] / kSquareSide, dims[1] / kSquareSide, dims[2], dims[3]}};
  const auto [o, i, h, w] = form.blocks;
  const std::vector<std::int64_t> dense{i * h * w * kSquare, h * w * kSquare, w * kSquare, kSquare};
  if (dims[0] % kSquareSide != 0 || dims[1] % kSquareSide != 0 || blocking_of(master).strides != dense)
    return std::nullopt;
  for (const BufferId buffer : updated.copies) {
    const dnnl::memory::desc& layout = *context.layouts[buffer];
    const std::optional<Paired> paired = pairs_of(layout);
    if (context.dtype(buffer) != DType::bf16 || !paired) return std::nullopt;
    BlockedCopy& copy = form.copies.emplace_back(BlockedCopy{.buffer = buffer, .paired = *paired});
    std::ranges::copy(blocking_of(layout).strides, copy.strides.begin());
  }
  return form;
}

Binder prepare_parameter(Context& context, const UpdatedParameter& updated, BufferId state,
                         const std::optional<BlockedWeight>& form) {
  return bind_loop([=, rule = context.rule, decays = context.graph.parameters[updated.parameter].decays,
                    count = static_cast<std::ptrdiff_t>(context.elements(updated.master))](const Arena& at) {
    const UpdatedTensors tensors{.weight = at.as(updated.master),
                                 .momentum = at.as(updated.momentum),
                                 .gradient = at.as(updated.gradient),
                                 .count = count};
    const Coefficients by = coefficients_of(rule, decays, at.as<State>(state)->step);
    form ? update_blocks(tensors, by, *form, at) : update(tensors, by);
  });
}

// Rewrites a weight's copy in another layout.
Binder prepare_copy(Context& context, Instruction& instruction, BufferId master, BufferId copy) {
  const auto &from = *context.layouts[master], &to = *context.layouts[copy];
  Call call(context, instruction);
  call.input(DNNL_ARG_FROM, master, from);
  call.output(DNNL_ARG_TO, copy, to);
  return call.finish<dnnl::reorder>({context.engine, from, context.engine, to});
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const Update& update) {
  std::vector<Binder> binders;
  for (const UpdatedParameter& updated : update.parameters) {
    const auto& layout =
        context.settle(updated.master, plain_layout(context.graph.parameters[updated.parameter].dims));
    context.settle(updated.momentum, layout);
    context.settle(updated.gradient, layout);
    const std::optional<BlockedWeight> form = blocked_weight(context, updated);
    binders.push_back(prepare_parameter(context, updated, update.state, form));
    if (form) continue;
    for (const BufferId copy : updated.copies)
      binders.push_back(prepare_copy(context, instruction, updated.master, copy));
  }
  return [=](const Arena& arena) -> ComputeFn {
    std::vector<ComputeFn> bound;
    for (const Binder& bind : binders) bound.push_back(bind(arena));
    return [=] {
      for (const ComputeFn& run : bound) run();
    };
  };
}

Binder prepare(Context& context, Instruction&, const UpdateRows& updated) {
  const std::vector<std::int64_t>& dims = context.graph.parameters[updated.parameter].dims;
  context.settle(updated.master, plain_layout(dims));
  context.settle(updated.momentum, plain_layout(dims));
  return bind_loop([=, rule = context.rule, decays = context.graph.parameters[updated.parameter].decays,
                    columns = dims[1]](const Arena& at) {
    const UpdatedTensors tensors{.weight = at.as(updated.master),
                                 .momentum = at.as(updated.momentum),
                                 .gradient = at.as(updated.d_rows)};
    const auto count = static_cast<std::size_t>(*at.as<std::int32_t>(updated.sample_count));
    update_rows(tensors, {at.as<std::int32_t>(updated.samples), count}, columns,
                coefficients_of(rule, decays, at.as<State>(updated.state)->step));
  });
}

Binder prepare(Context&, Instruction&, const AdvanceState& advance) {
  return bind_loop([=](const Arena& at) { ++at.as<State>(advance.state)->step.iteration; });
}

}  // namespace plumb::cpu
