// A program's instructions as a device prepared them, until they are bound to memory.
#pragma once

#include <map>
#include <stdexcept>
#include <string>

#include "kernels/program/program.h"

namespace plumb {

// Binder: called with the device's arena, it returns Instruction::run; null where the device has nothing to
// run. Binders are kept by Instruction::name, because later passes insert instructions.
template <typename Binder>
class PreparedInstructions {
 public:
  // Prepares all instructions, in order. `prepare(Instruction&)` may set its workspace.
  template <typename Prepare>
  void prepare(Program& program, Prepare prepare) {
    binders_.clear();
    for (Instruction& instruction : program.instructions)
      if (!binders_.emplace(instruction.name, prepare(instruction)).second)
        throw std::logic_error("two instructions are called " + instruction.name);
  }

  // Prepares those that later passes added. They must not need workspace that the memory plan lacks.
  template <typename Prepare>
  void prepare_added(Program& program, Prepare prepare) {
    for (Instruction& instruction : program.instructions) {
      if (binders_.contains(instruction.name)) continue;
      const std::size_t planned = instruction.workspace_bytes;
      binders_.emplace(instruction.name, prepare(instruction));
      if (instruction.workspace_bytes != planned)
        throw std::logic_error("no workspace is planned for " + instruction.name);
    }
  }

  template <typename Arena>
  void bind(Program& program, Arena& arena) const {
    for (Instruction& instruction : program.instructions)
      if (const Binder& bind_instruction = binders_.at(instruction.name))
        instruction.run = bind_instruction(arena);
  }

 private:
  std::map<std::string, Binder> binders_;
};

}  // namespace plumb
