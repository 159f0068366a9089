// What a described Program's steps are and use, in words that tests compare.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/program.h"

namespace plumb {

template <typename Instruction>
std::size_t count_kind(const Program& program) {
  return static_cast<std::size_t>(
      std::count_if(program.steps.begin(), program.steps.end(),
                    [](const Step& step) { return step.as<Instruction>() != nullptr; }));
}

inline const Step& step_named(const Program& program, const std::string& name) {
  const auto found = std::find_if(program.steps.begin(), program.steps.end(),
                                  [&](const Step& step) { return step.name == name; });
  if (found == program.steps.end()) throw std::out_of_range("no step " + name);
  return *found;
}

// Each operand with its access and its buffer: "in r conv1", "d_in rw images".
inline std::vector<std::string> operands_of(const Program& program, const std::string& step) {
  std::vector<std::string> operands;
  for (const BufferUse& use : step_named(program, step).uses()) {
    const char* access = use.access == Access::read ? " r " : use.access == Access::write ? " w " : " rw ";
    operands.push_back(std::string(use.operand) + access + program.buffers[use.buffer].name);
  }
  return operands;
}

// Access and buffer of one operand: "r conv1". Empty if the step lacks it.
inline std::string operand_of(const Program& program, const std::string& step, const std::string& operand) {
  for (const std::string& text : operands_of(program, step))
    if (text.starts_with(operand + " ")) return text.substr(operand.size() + 1);
  return {};
}

}  // namespace plumb
