// A program's instructions as a device prepared them, until they are bound to memory.
#pragma once

#include <functional>
#include <map>
#include <stdexcept>
#include <string>

#include "kernels/program/memory_plan.h"
#include "kernels/program/program.h"

namespace plumb {

// Binders are null where the device has nothing to run. They are kept by Instruction::name, because later
// passes insert instructions.
class PreparedInstructions {
 public:
  using Prepare = std::function<Binder(Instruction&)>;  // may set the workspace

  // Prepares all instructions, in order.
  void prepare(Program& program, const Prepare& prepare) {
    binders_.clear();
    for (Instruction& instruction : program.instructions)
      if (!binders_.emplace(instruction.name, prepare(instruction)).second)
        throw std::logic_error("two instructions are called " + instruction.name);
  }

  // Prepares those that later passes added. They must not need workspace that the memory plan lacks.
  void prepare_added(Program& program, const Prepare& prepare) {
    for (Instruction& instruction : program.instructions) {
      if (binders_.contains(instruction.name)) continue;
      const std::size_t planned = instruction.workspace_bytes;
      binders_.emplace(instruction.name, prepare(instruction));
      if (instruction.workspace_bytes != planned)
        throw std::logic_error("no workspace is planned for " + instruction.name);
    }
  }

  void bind(Program& program, const Arena& arena) const {
    for (Instruction& instruction : program.instructions)
      if (const Binder& bind_instruction = binders_.at(instruction.name))
        instruction.run = bind_instruction(arena);
  }

 private:
  std::map<std::string, Binder> binders_;
};

}  // namespace plumb
