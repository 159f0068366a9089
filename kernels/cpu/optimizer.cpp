// The update of one parameter, or of the rows of it that a step worked with: v = mu v + (s g + wd w); sgd: w
// -= lr v; nag: w -= lr ((s g + wd w) + mu v). Source: PyTorch's torch.optim.SGD with dampening 0
// (nesterov=True for nag). s is StepState::gradient_scale.
#include <algorithm>

#include "kernels/cpu/binding.h"
#include "kernels/cpu/prefetch.h"

namespace plumb::cpu {
namespace {

struct Tensors {
  float* weight = nullptr;
  float* momentum = nullptr;
  const float* gradient = nullptr;
  std::ptrdiff_t count = 0;
};

struct Coefficients {
  float momentum = 0, weight_decay = 0, learning_rate = 0, gradient_scale = 1;
};

// Below this many elements starting threads costs more than the loop.
constexpr std::ptrdiff_t kWorthThreads = 16384;
constexpr std::ptrdiff_t kPart = 4096;

// One thread's part. Reads 12, writes 8 bytes per element. Addresses and coefficients come by value: what the
// loop had to look up in memory that it may be writing to would keep it from being vectorised.
template <bool kNesterov>
void update_part(float* weight, float* momentum, const float* gradient, std::ptrdiff_t count,
                 Coefficients by) {
#pragma omp simd
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const float slope = by.gradient_scale * gradient[i] + by.weight_decay * weight[i];
    const float velocity = by.momentum * momentum[i] + slope;
    momentum[i] = velocity;
    weight[i] -= by.learning_rate * (kNesterov ? slope + by.momentum * velocity : velocity);
  }
}

template <bool kNesterov>
void update(const Tensors& at, const Coefficients& by) {
#pragma omp parallel for schedule(static) if (at.count >= kWorthThreads)
  for (std::ptrdiff_t i = 0; i < at.count; i += kPart)
    update_part<kNesterov>(at.weight + i, at.momentum + i, at.gradient + i, std::min(kPart, at.count - i),
                           by);
}

// Which rows of weight and momentum the rows of the gradient are of. All differ.
struct Rows {
  const std::int32_t* samples = nullptr;
  const std::int32_t* count = nullptr;
  std::ptrdiff_t columns = 0;
};

// The same per element of the rows that are in use.
template <bool kNesterov>
void update_rows(const Tensors& at, const Rows& rows, const Coefficients& by) {
#pragma omp parallel for schedule(static) if (*rows.count * rows.columns >= kWorthThreads)
  for (std::ptrdiff_t i = 0; i < *rows.count; ++i) {
    if (i + kRowsAhead < *rows.count) {
      const std::ptrdiff_t ahead = rows.samples[i + kRowsAhead] * rows.columns;
      prefetch_row(at.weight + ahead, rows.columns);
      prefetch_row(at.momentum + ahead, rows.columns);
    }
    const std::ptrdiff_t row = rows.samples[i] * rows.columns;
    update_part<kNesterov>(at.weight + row, at.momentum + row, at.gradient + i * rows.columns, rows.columns,
                           by);
  }
}

// Rewrites the copies of a weight that other steps read in their own layout.
std::vector<Finish> prepare_copies(Context& context, Step& step) {
  std::vector<Finish> copies;
  const BufferId master = step.uses[0].buffer;
  for (std::size_t use = 4; use < step.uses.size(); ++use) {
    const BufferId copy = step.uses[use].buffer;
    const auto& from = *context.layouts[master];
    const auto& to = *context.layouts[copy];
    Call call(context, step);
    call.input(DNNL_ARG_FROM, master, from);
    call.output(DNNL_ARG_TO, copy, to);
    copies.push_back(
        call.finish(dnnl::reorder(dnnl::reorder::primitive_desc(context.engine, from, context.engine, to))));
  }
  return copies;
}

// How one parameter is updated in the iteration that is running.
struct Rule {
  UpdateRule rule;
  bool decays = true;

  Rule(const Context& context, const Step& step)
      : rule(context.rule), decays(context.graph.parameters[step.parameter].decays) {}
  bool nesterov() const { return rule.optimizer == Optimizer::nag; }
  Coefficients now(const StepState& state) const {
    return {.momentum = static_cast<float>(rule.momentum),
            .weight_decay = static_cast<float>(decays ? rule.weight_decay : 0),
            .learning_rate = state.learning_rate,
            .gradient_scale = state.gradient_scale};
  }
};

Tensors tensors_of(const Arena& arena, const std::vector<BufferUse>& uses) {
  return {.weight = arena.floats(uses[0].buffer),
          .momentum = arena.floats(uses[1].buffer),
          .gradient = arena.floats(uses[2].buffer)};
}

Finish prepare_parameter_update(Context& context, Step& step) {
  const Parameter& parameter = context.graph.parameters[step.parameter];
  const auto& layout = context.settle(step.uses[0].buffer, plain_layout(parameter.dims));
  context.settle(step.uses[1].buffer, layout);
  context.settle(step.uses[2].buffer, layout);
  const auto count = static_cast<std::ptrdiff_t>(context.floats(step.uses[0].buffer));
  return [=, uses = step.uses, rule = Rule(context, step),
          copies = prepare_copies(context, step)](const Arena& arena) -> ComputeFn {
    Tensors at = tensors_of(arena, uses);
    at.count = count;
    const auto* state = reinterpret_cast<const State*>(arena.data(uses[3].buffer));
    std::vector<ComputeFn> rewrite;
    rewrite.reserve(copies.size());
    for (const Finish& copy : copies) rewrite.push_back(copy(arena));
    return [=, rewrite = std::move(rewrite)] {
      const Coefficients by = rule.now(state->step);
      rule.nesterov() ? update<true>(at, by) : update<false>(at, by);
      for (const ComputeFn& copy : rewrite) copy();
    };
  };
}

Finish prepare_row_update(Context& context, Step& step) {
  const std::vector<std::int64_t>& dims = context.graph.parameters[step.parameter].dims;
  context.settle(step.uses[0].buffer, plain_layout(dims));
  context.settle(step.uses[1].buffer, plain_layout(dims));
  return [uses = step.uses, rule = Rule(context, step), columns = dims[1]](const Arena& arena) -> ComputeFn {
    const Tensors at = tensors_of(arena, uses);
    const Rows rows{.samples = reinterpret_cast<const std::int32_t*>(arena.data(uses[3].buffer)),
                    .count = reinterpret_cast<const std::int32_t*>(arena.data(uses[4].buffer)),
                    .columns = columns};
    const auto* state = reinterpret_cast<const State*>(arena.data(uses[5].buffer));
    return [=] {
      const Coefficients by = rule.now(state->step);
      rule.nesterov() ? update_rows<true>(at, rows, by) : update_rows<false>(at, rows, by);
    };
  };
}

}  // namespace

Finish prepare_update(Context& context, Step& step) {
  if (step.kind == StepKind::update) return prepare_parameter_update(context, step);
  if (step.kind == StepKind::update_rows) return prepare_row_update(context, step);
  return [state = step.uses[0].buffer](const Arena& arena) -> ComputeFn {
    return [at = reinterpret_cast<State*>(arena.data(state))] { ++at->step.iteration; };
  };
}

}  // namespace plumb::cpu
