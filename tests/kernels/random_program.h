// Programs with random buffers, views and instructions in three lanes, for property tests.
#pragma once

#include <random>
#include <string>

#include "kernels/program/program.h"

namespace plumb {

inline Program random_program(unsigned seed, std::size_t most_instructions = 40) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t end) { return static_cast<std::size_t>(random() % end); };
  Program program;
  const std::size_t roots = 3 + below(14);
  for (std::size_t i = 0; i < roots; ++i) {
    const std::size_t bytes = 1 + below(below(3) == 0 ? 100000 : 9000);
    program.buffers.push_back(
        {.name = "root" + std::to_string(i), .bytes = bytes, .persistent = below(6) == 0});
  }
  for (std::size_t i = 0, views = below(8); i < views; ++i) {
    const BufferId root = below(roots);
    const std::size_t offset = below(program.buffers[root].bytes);
    program.buffers.push_back({.name = "view" + std::to_string(i),
                               .bytes = 1 + below(program.buffers[root].bytes - offset),
                               .view = View{root, offset}});
  }
  std::vector<bool> written(program.buffers.size(), false);
  for (std::size_t i = 0, instructions = 1 + below(most_instructions); i < instructions; ++i) {
    Recorded recorded;
    const auto lane = static_cast<Lane>(below(kLanes));
    const std::size_t workspace_bytes = below(4) == 0 ? below(20000) : 0;
    for (std::size_t u = 0, uses = below(4); u < uses; ++u) {
      const BufferId buffer = below(program.buffers.size());
      const BufferId root = root_of(program, buffer);
      const bool readable = written[root] || program.buffers[root].persistent;
      recorded.uses.push_back({buffer, readable ? static_cast<Access>(below(3)) : Access::write});
    }
    for (const AnyOperand& use : recorded.uses) {
      if (use.kind != Access::read) written[root_of(program, use.buffer)] = true;
    }
    program.instructions.push_back({.name = "step" + std::to_string(i),
                                    .operation = std::move(recorded),
                                    .lane = lane,
                                    .workspace_bytes = workspace_bytes});
  }
  return program;
}

// reaches[a][b]: a must end before b starts, by brute force from lanes and byte ranges alone.
inline std::vector<std::vector<bool>> brute_force_order(const Program& program) {
  const auto conflict = [&](const BufferUse& a, const BufferUse& b) {
    if (!a.writes() && !b.writes()) return false;
    if (root_of(program, a.buffer) != root_of(program, b.buffer)) return false;
    const auto begin = [&](const BufferUse& use) {
      const Buffer& buffer = program.buffers[use.buffer];
      return buffer.view ? buffer.view->offset : std::size_t{0};
    };
    const auto end = [&](const BufferUse& use) { return begin(use) + program.buffers[use.buffer].bytes; };
    return begin(a) < end(b) && begin(b) < end(a);
  };
  const std::size_t instructions = program.instructions.size();
  std::vector<std::vector<BufferUse>> uses;
  for (const Instruction& instruction : program.instructions) uses.push_back(instruction.uses());
  std::vector<std::vector<bool>> reaches(instructions, std::vector<bool>(instructions, false));
  for (InstructionId a = 0; a < instructions; ++a) {
    for (InstructionId b = a + 1; b < instructions; ++b) {
      reaches[a][b] = program.instructions[a].lane == program.instructions[b].lane;
      for (const BufferUse& use_a : uses[a]) {
        for (const BufferUse& use_b : uses[b]) {
          if (conflict(use_a, use_b)) reaches[a][b] = true;
        }
      }
    }
  }
  for (InstructionId k = 0; k < instructions; ++k) {
    for (InstructionId a = 0; a < instructions; ++a) {
      for (InstructionId b = 0; b < instructions; ++b) {
        if (reaches[a][k] && reaches[k][b]) reaches[a][b] = true;
      }
    }
  }
  return reaches;
}

}  // namespace plumb
