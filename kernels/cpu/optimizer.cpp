// The update of one parameter or of its sampled rows: v = mu v + (s g + wd w); sgd: w -= lr v;
// nag: w -= lr ((s g + wd w) + mu v). Source: PyTorch's torch.optim.SGD with dampening 0 (nesterov=True for
// nag). s is StepState::gradient_scale.
#include <algorithm>
#include <span>

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

Binder prepare_parameter(Context& context, const UpdatedParameter& updated, BufferId state) {
  return bind_loop([=, rule = context.rule, decays = context.graph.parameters[updated.parameter].decays,
                    count = static_cast<std::ptrdiff_t>(context.elements(updated.master))](const Arena& at) {
    const UpdatedTensors tensors{.weight = at.as(updated.master),
                                 .momentum = at.as(updated.momentum),
                                 .gradient = at.as(updated.gradient),
                                 .count = count};
    update(tensors, coefficients_of(rule, decays, at.as<State>(state)->step));
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
