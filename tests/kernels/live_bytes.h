// A lower bound for any memory plan.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "kernels/program/dependencies.h"
#include "kernels/program/program.h"

namespace plumb {

// The largest number of bytes live at one instruction, workspaces included. A buffer is live there if it is
// used at or before the instruction, and at or after it: two such buffers can't share memory.
inline std::size_t largest_live_bytes(const Program& program) {
  const HappensBefore happens_before(program);
  std::map<BufferId, std::vector<InstructionId>> uses;  // of roots, their views' included
  for (InstructionId id = 0; id < program.instructions.size(); ++id)
    for (const BufferUse& use : program.instructions[id].uses())
      uses[root_of(program, use.buffer)].push_back(id);
  std::size_t persistent = 0, largest = 0;
  for (const Buffer& buffer : program.buffers)
    if (!buffer.view && buffer.persistent) persistent += buffer.bytes;
  for (InstructionId now = 0; now < program.instructions.size(); ++now) {
    std::size_t live = program.instructions[now].workspace_bytes;
    for (const auto& [root, users] : uses) {
      const bool begun = std::ranges::any_of(
          users, [&](InstructionId user) { return user == now || happens_before(user, now); });
      const bool needed = std::ranges::any_of(
          users, [&](InstructionId user) { return user == now || happens_before(now, user); });
      if (begun && needed && !program.buffers[root].persistent) live += program.buffers[root].bytes;
    }
    largest = std::max(largest, live);
  }
  return persistent + largest;
}

}  // namespace plumb
