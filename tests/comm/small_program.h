// A training step small enough to count by hand.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/program/program.h"

namespace plumb {

struct SmallGradient {
  std::size_t bytes = 0;
  DType dtype = DType::f32;
  bool sharded = false;
};
inline constexpr SmallGradient kSharded{.bytes = 100, .sharded = true};

// Updates gradients `first` to `end` - 1 of `gradients`; the buffers shared by all updates follow the
// gradients: state, weight, momentum.
inline Update small_update(std::size_t first, std::size_t end, std::size_t gradients,
                           std::optional<Read> overflow = {}) {
  Update update{.state = gradients, .overflow = overflow, .parameters = {}};
  for (std::size_t i = first; i < end; ++i)
    update.parameters.push_back(
        {.parameter = i, .master = gradients + 1, .momentum = gradients + 2, .gradient = i, .copies = {}});
  return update;
}

// Backward writes the gradients from last to first, one instruction each ("backward2", "backward1", …), then
// one instruction without a gradient ("backward_input"); then one update per gradient ("update0", …).
// Gradient i is buffer i. Instructions before the updates are Recorded ones.
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
  for (const char* name : {"state", "weight", "momentum"})
    program.buffers.push_back({.name = name, .bytes = 4, .persistent = true});
  program.instructions.push_back({.name = "forward", .operation = Recorded{}, .phase = Phase::forward});
  for (std::size_t i = gradients.size(); i-- > 0;) {
    program.instructions.push_back({.name = "backward" + std::to_string(i),
                                    .operation = Recorded{{{i, Access::write}}},
                                    .phase = Phase::backward});
  }
  program.instructions.push_back(
      {.name = "backward_input", .operation = Recorded{}, .phase = Phase::backward});
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    program.instructions.push_back({.name = "update" + std::to_string(i),
                                    .operation = small_update(i, i + 1, gradients.size()),
                                    .phase = Phase::update});
  }
  return program;
}

// The same with a loss scale: one overflow search ("find_overflow"), then one update of all ("update").
inline Program scaled_program(const std::vector<SmallGradient>& gradients) {
  Program program = small_program(gradients);
  std::erase_if(program.instructions,
                [](const Instruction& instruction) { return instruction.as<Update>(); });
  const BufferId overflow = program.buffers.size();
  program.buffers.push_back(
      {.name = "overflow", .role = Role::overflow, .dims = {1}, .bytes = 4, .persistent = true});
  FindOverflow search{.overflow = overflow, .gradients = {}};
  for (BufferId gradient = 0; gradient < gradients.size(); ++gradient) search.gradients.push_back(gradient);
  program.instructions.push_back({.name = "find_overflow", .operation = search, .phase = Phase::update});
  program.instructions.push_back({.name = "update",
                                  .operation = small_update(0, gradients.size(), gradients.size(), overflow),
                                  .phase = Phase::update});
  return program;
}

inline std::vector<AnyOperand>& recorded_uses(Instruction& instruction) {
  return std::get<Recorded>(instruction.operation).uses;
}

inline std::vector<std::string> instruction_names(const Program& program) {
  std::vector<std::string> names;
  for (const Instruction& instruction : program.instructions) names.push_back(instruction.name);
  return names;
}

inline std::vector<Collective> collectives_of(const Program& program) {
  std::vector<Collective> collectives;
  for (const Instruction& instruction : program.instructions) {
    if (const auto* collective = instruction.as<Collective>()) collectives.push_back(*collective);
  }
  return collectives;
}

}  // namespace plumb
