// A described Program's instructions and their operands as text, for comparison in tests.
#pragma once

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/program/program.h"

namespace plumb {

template <typename Operation>
std::size_t count_kind(const Program& program) {
  return static_cast<std::size_t>(
      std::count_if(program.instructions.begin(), program.instructions.end(),
                    [](const Instruction& instruction) { return instruction.as<Operation>() != nullptr; }));
}

// Number of such instructions that have this operand.
template <typename Operation, typename Member>
std::size_t count_with(const Program& program, std::optional<Member> Operation::*member) {
  return static_cast<std::size_t>(std::count_if(program.instructions.begin(), program.instructions.end(),
                                                [&](const Instruction& instruction) {
                                                  const auto* operation = instruction.as<Operation>();
                                                  return operation && operation->*member;
                                                }));
}

inline const Instruction& instruction_named(const Program& program, const std::string& name) {
  const auto found = std::find_if(program.instructions.begin(), program.instructions.end(),
                                  [&](const Instruction& instruction) { return instruction.name == name; });
  if (found == program.instructions.end()) throw std::out_of_range("no step " + name);
  return *found;
}

// Each operand with access and buffer: "in r conv1", "d_in rw images".
inline std::vector<std::string> operands_of(const Program& program, const std::string& instruction) {
  std::vector<std::string> operands;
  for (const BufferUse& use : instruction_named(program, instruction).uses()) {
    const char* access = use.access == Access::read ? " r " : use.access == Access::write ? " w " : " rw ";
    operands.push_back(std::string(use.operand) + access + program.buffers[use.buffer].name);
  }
  return operands;
}

// Access and buffer of one operand: "r conv1". Empty if the instruction doesn't have it.
inline std::string operand_of(const Program& program, const std::string& instruction,
                              const std::string& operand) {
  for (const std::string& text : operands_of(program, instruction))
    if (text.starts_with(operand + " ")) return text.substr(operand.size() + 1);
  return {};
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
