// Questions about a described Program's instructions, for tests.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>

#include "kernels/program/program.h"

namespace plumb {

inline const Instruction& instruction_named(const Program& program, const std::string& name) {
  const auto found = std::find_if(program.instructions.begin(), program.instructions.end(),
                                  [&](const Instruction& instruction) { return instruction.name == name; });
  if (found == program.instructions.end()) throw std::out_of_range("no step " + name);
  return *found;
}

// Whether it is the line of a norm that finalizes its statistics itself, which uses it with that; backward of
// a block's end reads the mask.
inline bool is_line_of_one_pass(const Program& program, BufferId id) {
  return std::any_of(program.instructions.begin(), program.instructions.end(),
                     [&](const Instruction& instruction) {
                       const auto* apply = instruction.as<BatchNormApply>();
                       return apply && apply->finalize && apply->line() == id;
                     });
}

}  // namespace plumb
