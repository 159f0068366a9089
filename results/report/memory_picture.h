// The memory plan of a run as rectangles: bytes of the arena over the instructions of an iteration.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace plumb {

struct MemoryBlock {
  std::string name;  // the buffer's; of several together the largest one's
  std::string role;  // "parameter", "activation", …; "mixed" of several
  std::int64_t offset = 0, bytes = 0;
  int first_instruction = 0, last_instruction = 0;  // both included; what persists: all instructions
  int buffers = 1;                                  // how many small neighbours of one life it stands for
};

struct InstructionSpan {
  std::string phase;
  int first_instruction = 0, last_instruction = 0;
};

struct MemoryPicture {
  std::int64_t arena_bytes = 0;
  int instructions = 0;
  std::vector<InstructionSpan> phases;  // of the compute lane, in the order of instructions
  std::vector<MemoryBlock> blocks;      // by offset, then first instruction
  int left_out = 0;                     // buffers too small to be seen
};

// The picture of a program.json. Views are part of the buffer they look into. Throws Error(bad_data) that
// names `origin`.
MemoryPicture memory_picture(const nlohmann::ordered_json& program, const std::string& origin,
                             std::size_t most_blocks = 500);

}  // namespace plumb
