// The update of one parameter or of its sampled rows: v = mu v + (s g + wd w); sgd: w -= lr v;
// nag: w -= lr ((s g + wd w) + mu v). Source: PyTorch's torch.optim.SGD with dampening 0 (nesterov=True for
// nag). s is StepState::gradient_scale.
#include <algorithm>

#include "kernels/cpu/binding.h"
#include "kernels/cpu/prefetch.h"

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
};

// Below this many elements, starting threads costs more than the loop.
constexpr std::ptrdiff_t kWorthThreads = 16384;
constexpr std::ptrdiff_t kPart = 4096;

// One thread's part. Reads 12, writes 8 bytes per element. Pointers and coefficients are passed by value:
// possible aliasing with the writes would prevent vectorisation.
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
void update(const UpdatedTensors& at, const Coefficients& by) {
#pragma omp parallel for schedule(static) if (at.count >= kWorthThreads)
  for (std::ptrdiff_t i = 0; i < at.count; i += kPart)
    update_part<kNesterov>(at.weight + i, at.momentum + i, at.gradient + i, std::min(kPart, at.count - i),
                           by);
}

// Maps gradient rows to rows of weight and momentum; all distinct.
struct Rows {
  const std::int32_t* samples = nullptr;
  const std::int32_t* count = nullptr;
  std::ptrdiff_t columns = 0;
};

// Same traffic per element, for the rows in use.
template <bool kNesterov>
void update_rows(const UpdatedTensors& at, const Rows& rows, const Coefficients& by) {
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

// Rewrites a weight's copies in other layouts.
std::vector<Binder> prepare_copies(Context& context, Instruction& instruction,
                                   const UpdatedParameter& updated) {
  std::vector<Binder> binders;
  for (const BufferId copy : updated.copies) {
    const auto& from = *context.layouts[updated.master];
    const auto& to = *context.layouts[copy];
    Call call(context, instruction);
    call.input(DNNL_ARG_FROM, updated.master, from);
    call.output(DNNL_ARG_TO, copy, to);
    binders.push_back(
        call.finish(dnnl::reorder(dnnl::reorder::primitive_desc(context.engine, from, context.engine, to))));
  }
  return binders;
}

// Coefficients of one parameter's update in the current iteration.
struct Rule {
  UpdateRule rule;
  bool decays = true;

  Rule(const Context& context, ParameterId parameter)
      : rule(context.rule), decays(context.graph.parameters[parameter].decays) {}
  bool nesterov() const { return rule.optimizer == Optimizer::nag; }
  Coefficients now(const StepState& state) const {
    return {.momentum = static_cast<float>(rule.momentum),
            .weight_decay = static_cast<float>(decays ? rule.weight_decay : 0),
            .learning_rate = state.learning_rate,
            .gradient_scale = state.gradient_scale};
  }
};

Binder prepare_parameter(Context& context, Instruction& instruction, const UpdatedParameter& updated,
                         BufferId state) {
  const Parameter& parameter = context.graph.parameters[updated.parameter];
  const auto& layout = context.settle(updated.master, plain_layout(parameter.dims));
  context.settle(updated.momentum, layout);
  context.settle(updated.gradient, layout);
  const auto count = static_cast<std::ptrdiff_t>(context.floats(updated.master));
  return [=, rule = Rule(context, updated.parameter),
          copies = prepare_copies(context, instruction, updated)](const Arena& arena) -> ComputeFn {
    const UpdatedTensors at{.weight = arena.as(updated.master),
                            .momentum = arena.as(updated.momentum),
                            .gradient = arena.as(updated.gradient),
                            .count = count};
    std::vector<ComputeFn> rewrite;
    rewrite.reserve(copies.size());
    for (const Binder& copy : copies) rewrite.push_back(copy(arena));
    return [=, state = arena.as<State>(state), rewrite = std::move(rewrite)] {
      const Coefficients by = rule.now(state->step);
      rule.nesterov() ? update<true>(at, by) : update<false>(at, by);
      for (const ComputeFn& copy : rewrite) copy();
    };
  };
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const Update& update) {
  std::vector<Binder> binders;
  for (const UpdatedParameter& updated : update.parameters)
    binders.push_back(prepare_parameter(context, instruction, updated, update.state));
  return [binders = std::move(binders)](const Arena& arena) -> ComputeFn {
    std::vector<ComputeFn> updates;
    for (const Binder& bind : binders) updates.push_back(bind(arena));
    if (updates.size() == 1) return std::move(updates.front());
    return [updates = std::move(updates)] {
      for (const ComputeFn& one : updates) one();
    };
  };
}

Binder prepare(Context& context, Instruction&, const UpdateRows& updated) {
  const std::vector<std::int64_t>& dims = context.graph.parameters[updated.parameter].dims;
  context.settle(updated.master, plain_layout(dims));
  context.settle(updated.momentum, plain_layout(dims));
  return [=, rule = Rule(context, updated.parameter), columns = dims[1]](const Arena& arena) -> ComputeFn {
    const UpdatedTensors at{.weight = arena.as(updated.master),
                            .momentum = arena.as(updated.momentum),
                            .gradient = arena.as(updated.d_rows)};
    const Rows rows{.samples = arena.as<std::int32_t>(updated.samples),
                    .count = arena.as<std::int32_t>(updated.sample_count),
                    .columns = columns};
    return [=, state = arena.as<State>(updated.state)] {
      const Coefficients by = rule.now(state->step);
      rule.nesterov() ? update_rows<true>(at, rows, by) : update_rows<false>(at, rows, by);
    };
  };
}

Binder prepare(Context&, Instruction&, const AdvanceState& advance) {
  return [=](const Arena& arena) -> ComputeFn {
    return [state = arena.as<State>(advance.state)] { ++state->step.iteration; };
  };
}

}  // namespace plumb::cpu
