// The update of one parameter: v = mu v + (s g + wd w); sgd: w -= lr v; nag: w -= lr ((s g + wd w) + mu v).
// Source: PyTorch's torch.optim.SGD with dampening 0 (nesterov=True for nag). s is StepState::gradient_scale.
#include "kernels/cpu/binding.h"

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

// Reads 12, writes 8 bytes per element.
template <bool kNesterov>
void update(const Tensors& at, const Coefficients& by) {
#pragma omp parallel for simd schedule(static) if (at.count >= kWorthThreads)
  for (std::ptrdiff_t i = 0; i < at.count; ++i) {
    const float slope = by.gradient_scale * at.gradient[i] + by.weight_decay * at.weight[i];
    const float velocity = by.momentum * at.momentum[i] + slope;
    at.momentum[i] = velocity;
    at.weight[i] -= by.learning_rate * (kNesterov ? slope + by.momentum * velocity : velocity);
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

Finish prepare_parameter_update(Context& context, Step& step) {
  const Parameter& parameter = context.graph.parameters[step.parameter];
  const auto& layout = context.settle(step.uses[0].buffer, plain_layout(parameter.dims));
  context.settle(step.uses[1].buffer, layout);
  context.settle(step.uses[2].buffer, layout);
  const UpdateRule rule = context.rule;
  const auto decay = static_cast<float>(parameter.decays ? rule.weight_decay : 0);
  const auto count = static_cast<std::ptrdiff_t>(context.floats(step.uses[0].buffer));
  return [=, uses = step.uses, copies = prepare_copies(context, step)](const Arena& arena) -> ComputeFn {
    const Tensors at{.weight = arena.floats(uses[0].buffer),
                     .momentum = arena.floats(uses[1].buffer),
                     .gradient = arena.floats(uses[2].buffer),
                     .count = count};
    const auto* state = reinterpret_cast<const State*>(arena.data(uses[3].buffer));
    std::vector<ComputeFn> rewrite;
    rewrite.reserve(copies.size());
    for (const Finish& copy : copies) rewrite.push_back(copy(arena));
    return [=, rewrite = std::move(rewrite)] {
      const Coefficients by{.momentum = static_cast<float>(rule.momentum),
                            .weight_decay = decay,
                            .learning_rate = state->step.learning_rate,
                            .gradient_scale = state->step.gradient_scale};
      rule.optimizer == Optimizer::nag ? update<true>(at, by) : update<false>(at, by);
      for (const ComputeFn& copy : rewrite) copy();
    };
  };
}

}  // namespace

Finish prepare_update(Context& context, Step& step) {
  if (step.kind == StepKind::update) return prepare_parameter_update(context, step);
  return [state = step.uses[0].buffer](const Arena& arena) -> ComputeFn {
    return [at = reinterpret_cast<State*>(arena.data(state))] { ++at->step.iteration; };
  };
}

}  // namespace plumb::cpu
