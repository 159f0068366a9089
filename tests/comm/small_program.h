// A step of training small enough to count by hand.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/program.h"

namespace plumb {

struct SmallGradient {
  std::size_t bytes = 0;
  DType dtype = DType::f32;
  bool sharded = false;
};
inline constexpr SmallGradient kSharded{.bytes = 100, .sharded = true};

// Backward writes the gradients from the last to the first, one step each ("backward2", "backward1", …), then
// one step without a gradient ("backward_input"); one update per gradient follows ("update0", …). Gradient i
// is buffer i.
inline Program small_program(const std::vector<SmallGradient>& gradients) {
  Program program;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto [bytes, dtype, sharded] = gradients[i];
    program.buffers.push_back({.name = "gradient" + std::to_string(i),
                               .role = Role::gradient,
                               .dtype = dtype,
                               .dims = {static_cast<std::int64_t>(bytes / bytes_of(dtype))},
                               .bytes = bytes,
                               .persistent = true,
                               .sharded = sharded});
  }
  program.steps.push_back({.name = "forward", .kind = StepKind::conv_forward, .phase = Phase::forward});
  for (std::size_t i = gradients.size(); i-- > 0;) {
    program.steps.push_back({.name = "backward" + std::to_string(i),
                             .kind = StepKind::conv_backward_weights,
                             .phase = Phase::backward,
                             .uses = {{i, Access::write}}});
  }
  program.steps.push_back(
      {.name = "backward_input", .kind = StepKind::conv_backward_data, .phase = Phase::backward});
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    program.steps.push_back({.name = "update" + std::to_string(i),
                             .kind = StepKind::update,
                             .phase = Phase::update,
                             .uses = {{i, Access::read}}});
  }
  return program;
}

// The same with a loss scale: one search for overflows ("find_overflow"), then one update of all ("update").
inline Program scaled_program(const std::vector<SmallGradient>& gradients) {
  Program program = small_program(gradients);
  std::erase_if(program.steps, [](const Step& step) { return step.kind == StepKind::update; });
  const BufferId overflow = program.buffers.size();
  program.buffers.push_back(
      {.name = "overflow", .role = Role::overflow, .dims = {1}, .bytes = 4, .persistent = true});
  Step find{.name = "find_overflow", .kind = StepKind::find_overflow, .phase = Phase::update};
  Step update{.name = "update", .kind = StepKind::update, .phase = Phase::update};
  find.uses = {{overflow, Access::write}};
  update.uses = {{overflow, Access::read}};
  for (BufferId gradient = 0; gradient < gradients.size(); ++gradient) {
    find.uses.push_back({gradient, Access::read});
    update.uses.push_back({gradient, Access::read});
  }
  program.steps.push_back(find);
  program.steps.push_back(update);
  return program;
}

inline std::vector<std::string> step_names(const Program& program) {
  std::vector<std::string> names;
  for (const Step& step : program.steps) names.push_back(step.name);
  return names;
}

inline const Step& step_named(const Program& program, const std::string& name) {
  for (const Step& step : program.steps) {
    if (step.name == name) return step;
  }
  throw std::out_of_range("no step " + name);
}

inline std::vector<Collective> collectives_of(const Program& program) {
  std::vector<Collective> collectives;
  for (const Step& step : program.steps) {
    if (const auto* collective = std::get_if<Collective>(&step.action)) collectives.push_back(*collective);
  }
  return collectives;
}

}  // namespace plumb
