// The memory plan of a run as rectangles: bytes of the arena over the instructions of an iteration.
#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/error.h"
#include "results/record/lanes.h"
#include "results/record/object_reader.h"
#include "results/report/run_parts.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

// A block under this share of the arena is less than half a pixel high: neighbours are joined.
constexpr std::int64_t kSmallestShare = 2000;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;  // 1 PiB

struct Life {
  int first = -1, last = -1;
};

// The buffer whose bytes are used: a view's are those of the buffer it looks into.
std::vector<std::size_t> owners_of(const Json& buffers, const std::string& origin) {
  const auto last = static_cast<std::int64_t>(buffers.size()) - 1;
  std::vector<std::size_t> owners(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    owners[i] = i;
    if (!buffers[i].contains("view")) continue;
    const Json& view = ObjectReader(buffers[i], origin, "buffers[]").object("view");
    owners[i] = static_cast<std::size_t>(ObjectReader(view, origin, "view").integer("of", 0, last));
  }
  return owners;
}

std::vector<Life> lives_of(const Json& instructions, const std::vector<std::size_t>& owners,
                           const std::string& origin) {
  const auto last = static_cast<std::int64_t>(owners.size()) - 1;
  std::vector<Life> lives(owners.size());
  for (std::size_t i = 0; i < instructions.size(); ++i)
    for (const Json& use : ObjectReader(instructions[i], origin, "steps[]").list("uses")) {
      const auto buffer = ObjectReader(use, origin, "uses[]").integer("buffer", 0, last);
      Life& life = lives[owners[static_cast<std::size_t>(buffer)]];
      life.last = static_cast<int>(i);
      if (life.first < 0) life.first = life.last;
    }
  return lives;
}

std::vector<InstructionSpan> phases_of(const Json& instructions, const std::string& origin) {
  std::vector<InstructionSpan> phases;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const ObjectReader reader(instructions[i], origin, "steps[]");
    if (!computes(reader.text("lane"))) continue;
    const std::string phase = reader.text("phase");
    const int instruction = static_cast<int>(i);
    if (phases.empty() || phases.back().phase != phase) phases.push_back({phase, instruction, instruction});
    phases.back().last_instruction = instruction;
  }
  return phases;
}

// Small blocks of one life that lie one behind the other become one, until it can be seen. A gap that is too
// small to be seen may be between two.
std::vector<MemoryBlock> joined(const std::vector<MemoryBlock>& blocks, std::int64_t arena_bytes) {
  const std::int64_t visible = std::max<std::int64_t>(1, arena_bytes / kSmallestShare);
  std::map<std::pair<int, int>, std::size_t> last_of_life;
  std::vector<MemoryBlock> result;
  std::vector<std::int64_t> largest;  // buffer of each result, in bytes
  for (const MemoryBlock& block : blocks) {
    const auto [before, is_first] =
        last_of_life.emplace(std::pair(block.first_instruction, block.last_instruction), result.size());
    if (!is_first) {
      MemoryBlock& last = result[before->second];
      const std::int64_t gap = block.offset - last.offset - last.bytes;
      if (block.bytes < visible && last.bytes < visible && gap < visible) {
        if (block.bytes >
            std::exchange(largest[before->second], std::max(largest[before->second], block.bytes)))
          last.name = block.name;
        if (last.role != block.role) last.role = "mixed";
        last.bytes = block.offset + block.bytes - last.offset;
        ++last.buffers;
        continue;
      }
      before->second = result.size();
    }
    largest.push_back(block.bytes);
    result.push_back(block);
  }
  return result;
}

double area(const MemoryBlock& block) {
  return static_cast<double>(block.bytes) * (block.last_instruction - block.first_instruction + 1);
}

void keep_largest(MemoryPicture& picture, std::size_t most_blocks) {
  auto& blocks = picture.blocks;
  if (blocks.size() <= most_blocks) return;
  std::ranges::stable_sort(blocks, std::greater(), area);
  for (std::size_t i = most_blocks; i < blocks.size(); ++i) picture.left_out += blocks[i].buffers;
  blocks.resize(most_blocks);
}

void sort_by_place(std::vector<MemoryBlock>& blocks) {
  std::ranges::stable_sort(
      blocks, {}, [](const MemoryBlock& block) { return std::pair(block.offset, block.first_instruction); });
}

}  // namespace

MemoryPicture memory_picture(const Json& program, const std::string& origin, std::size_t most_blocks) {
  const ObjectReader reader(program, origin);
  const Json& buffers = reader.list("buffers");
  const Json& instructions = reader.list("steps");
  MemoryPicture picture;
  picture.arena_bytes = reader.integer("arena_bytes", 0, kMostBytes);
  picture.instructions = static_cast<int>(instructions.size());
  picture.phases = phases_of(instructions, origin);
  const std::vector<std::size_t> owners = owners_of(buffers, origin);
  const std::vector<Life> lives = lives_of(instructions, owners, origin);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (owners[i] != i || !buffers[i].contains("offset")) continue;
    const ObjectReader buffer(buffers[i], origin, "buffers[]");
    const bool persistent = buffers[i].contains("persistent");
    if (lives[i].first < 0 && !persistent) continue;
    picture.blocks.push_back(
        {.name = buffer.text("name"),
         .role = buffer.text("role"),
         .offset = buffer.integer("offset", 0, kMostBytes),
         .bytes = buffer.integer("bytes", 0, kMostBytes),
         .first_instruction = persistent ? 0 : lives[i].first,
         .last_instruction = persistent ? std::max(0, picture.instructions - 1) : lives[i].last});
  }
  sort_by_place(picture.blocks);
  picture.blocks = joined(picture.blocks, picture.arena_bytes);
  keep_largest(picture, most_blocks);
  sort_by_place(picture.blocks);
  return picture;
}

}  // namespace plumb
