// The update of one parameter or of its sampled rows: v = mu v + (s g + wd w); sgd: w -= lr v;
// nag: w -= lr ((s g + wd w) + mu v). Source: PyTorch's torch.optim.SGD with dampening 0 (nesterov=True for
// nag). s is StepState::gradient_scale.
#include <algorithm>

#include "kernels/cpu/binding.h"
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
};

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

Binder prepare_parameter(Context& context, const UpdatedParameter& updated, BufferId state) {
  const auto& layout =
      context.settle(updated.master, plain_layout(context.graph.parameters[updated.parameter].dims));
  context.settle(updated.momentum, layout);
  context.settle(updated.gradient, layout);
  return bind_loop([=, rule = Rule(context, updated.parameter),
                    count = static_cast<std::ptrdiff_t>(context.elements(updated.master))](const Arena& at) {
    const UpdatedTensors tensors{.weight = at.as(updated.master),
                                 .momentum = at.as(updated.momentum),
                                 .gradient = at.as(updated.gradient),
                                 .count = count};
    const Coefficients by = rule.now(at.as<State>(state)->step);
    rule.nesterov() ? update<true>(tensors, by) : update<false>(tensors, by);
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
    binders.push_back(prepare_parameter(context, updated, update.state));
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
  return bind_loop([=, rule = Rule(context, updated.parameter), columns = dims[1]](const Arena& at) {
    const UpdatedTensors tensors{.weight = at.as(updated.master),
                                 .momentum = at.as(updated.momentum),
                                 .gradient = at.as(updated.d_rows)};
    const Rows rows{.samples = at.as<std::int32_t>(updated.samples),
                    .count = at.as<std::int32_t>(updated.sample_count),
                    .columns = columns};
    const Coefficients by = rule.now(at.as<State>(updated.state)->step);
    rule.nesterov() ? update_rows<true>(tensors, rows, by) : update_rows<false>(tensors, rows, by);
  });
}

Binder prepare(Context&, Instruction&, const AdvanceState& advance) {
  return bind_loop([=](const Arena& at) { ++at.as<State>(advance.state)->step.iteration; });
}

}  // namespace plumb::cpu
