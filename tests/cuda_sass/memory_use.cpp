#include "tests/cuda_sass/memory_use.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <optional>
#include <string_view>

namespace plumb::sass {
namespace {

bool has_part(std::string_view opcode, std::string_view part) {
  for (std::size_t at = 0; at != std::string_view::npos;) {
    const std::size_t end = std::min(opcode.find('.', at), opcode.size());
    if (opcode.substr(at, end - at) == part) return true;
    at = end == opcode.size() ? std::string_view::npos : end + 1;
  }
  return false;
}

std::optional<Access> access_of(const Instruction& instruction) {
  const std::string_view opcode = instruction.opcode, base = opcode.substr(0, opcode.find('.'));
  Access access;
  if (base == "LDG" || base == "LD" || base == "LDL")
    access.loads = true;
  else if (base != "STG" && base != "ST" && base != "STL")
    return std::nullopt;
  access.local = base == "LDL" || base == "STL";
  access.bytes = 4;
  if (has_part(opcode, "128")) access.bytes = 16;
  if (has_part(opcode, "64")) access.bytes = 8;
  if (has_part(opcode, "U16") || has_part(opcode, "S16")) access.bytes = 2;
  if (has_part(opcode, "U8") || has_part(opcode, "S8")) access.bytes = 1;
  return access;
}

// A branch's target: BRA 0x280, BRA P1, 0x280.
std::optional<unsigned> target_of(const Instruction& instruction) {
  if (instruction.opcode.substr(0, 3) != "BRA") return std::nullopt;
  const std::size_t at = instruction.operands.rfind("0x");
  if (at == std::string::npos) return std::nullopt;
  return static_cast<unsigned>(std::strtoul(instruction.operands.c_str() + at, nullptr, 16));
}

// Instructions [begin, end), by index.
struct Part {
  std::size_t begin = 0, end = 0;
  bool holds(const Part& other) const { return begin <= other.begin && other.end <= end; }
};

std::size_t place_of(const std::vector<Instruction>& code, unsigned address) {
  const auto at =
      std::lower_bound(code.begin(), code.end(), address,
                       [](const Instruction& one, unsigned wanted) { return one.address < wanted; });
  return static_cast<std::size_t>(at - code.begin());
}

// A loop spans a backward branch and its target, except the self-branch that ends a kernel.
std::vector<Part> loops_of(const std::vector<Instruction>& code) {
  std::vector<Part> loops;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const std::optional<unsigned> target = target_of(code[i]);
    if (target && *target < code[i].address) loops.push_back({place_of(code, *target), i + 1});
  }
  return loops;
}

int wide_bytes(const std::vector<Instruction>& code, const Part& part) {
  int bytes = 0;
  for (std::size_t i = part.begin; i < part.end; ++i) {
    const std::optional<Access> access = access_of(code[i]);
    if (access && !access->local && access->bytes == 16) bytes += access->bytes;
  }
  return bytes;
}

// Each main part's instructions, in order.
struct MainParts {
  std::vector<std::vector<Instruction>> parts;
  bool are_loops = true;
};
MainParts main_parts(const std::vector<Instruction>& code) {
  const std::vector<Part> loops = loops_of(code);
  std::vector<Part> main;
  for (const Part& loop : loops) {
    const auto inside = [&](const Part& other) {
      return &other != &loop && loop.holds(other) && wide_bytes(code, other) > 0;
    };
    if (wide_bytes(code, loop) > 0 && std::none_of(loops.begin(), loops.end(), inside)) main.push_back(loop);
  }
  std::stable_sort(main.begin(), main.end(),
                   [&](const Part& a, const Part& b) { return wide_bytes(code, a) > wide_bytes(code, b); });
  MainParts found;
  for (const Part& loop : main)
    found.parts.emplace_back(code.begin() + static_cast<std::ptrdiff_t>(loop.begin),
                             code.begin() + static_cast<std::ptrdiff_t>(loop.end));
  found.are_loops = !main.empty();
  if (found.are_loops) return found;
  found.parts.emplace_back();
  for (std::size_t i = 0; i < code.size(); ++i) {
    const auto holds = [i](const Part& loop) { return loop.begin <= i && i < loop.end; };
    if (std::none_of(loops.begin(), loops.end(), holds)) found.parts.front().push_back(code[i]);
  }
  return found;
}

struct Registers {
  int first = 0, count = 0;
  bool meets(const Registers& other) const {
    return first < other.first + other.count && other.first < first + count;
  }
};

// Registers an instruction names: R4, R2.64; for an access's data all words.
std::vector<Registers> registers_of(const Instruction& instruction) {
  const std::optional<Access> access = access_of(instruction);
  const std::string& text = instruction.operands;
  std::vector<Registers> named;
  bool in_address = false;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    in_address = text[i] == '[' || (in_address && text[i] != ']');
    if (text[i] != 'R' || std::isdigit(static_cast<unsigned char>(text[i + 1])) == 0) continue;
    if (i > 0 && std::isalnum(static_cast<unsigned char>(text[i - 1])) != 0) continue;  // UR4
    char* end = nullptr;
    Registers registers{static_cast<int>(std::strtol(text.c_str() + i + 1, &end, 10)), 1};
    if (std::string_view(end).starts_with(".64")) registers.count = 2;
    if (access && !in_address) registers.count = std::max(1, access->bytes / 4);
    named.push_back(registers);
  }
  return named;
}

// An instruction of a main part, for the search below.
struct Stage {
  std::vector<Registers> named;
  std::optional<Registers> loaded;  // from global memory
  int bytes = 0;
  std::vector<std::size_t> next;  // successors; the number of stages: end of the iteration
};

std::vector<Stage> stages_of(const std::vector<Instruction>& part) {
  std::vector<Stage> stages(part.size());
  for (std::size_t i = 0; i < part.size(); ++i) {
    stages[i].named = registers_of(part[i]);
    const std::optional<Access> access = access_of(part[i]);
    if (access && access->loads && !access->local && !stages[i].named.empty()) {
      stages[i].loaded = stages[i].named.front();
      stages[i].bytes = access->bytes;
    }
    const std::optional<unsigned> target = target_of(part[i]);
    const bool always = !part[i].predicated && part[i].operands.find('P') == std::string::npos;
    const std::size_t there = target ? place_of(part, *target) : 0;
    const bool forward = target && there > i && there < part.size() && part[there].address == *target;
    if (forward) stages[i].next.push_back(there);
    if (part[i].opcode == "EXIT" && always)
      stages[i].next = {part.size()};
    else if (!forward || !always)
      stages[i].next.push_back(i + 1);
  }
  return stages;
}

// Follows all paths through two iterations and finds the most bytes in flight.
class Flights {
 public:
  explicit Flights(const std::vector<Stage>& stages) : stages_(stages) {}
  void follow(MemoryUse& into) {
    walk({}, 0, 0);
    into.bytes_in_flight = most_bytes_;
    into.loads_in_flight = most_loads_;
  }

 private:
  struct Load {
    Registers into;
    int bytes = 0;
  };
  static constexpr int kMostWays = 2000;

  void walk(std::deque<Load> flying, std::size_t at, int round) {
    while (round < 2) {
      if (at == stages_.size()) {
        at = 0;
        ++round;
        continue;
      }
      const Stage& stage = stages_[at];
      for (std::size_t i = flying.size(); i-- > 0;) {
        const auto meets = [&](const Registers& named) { return named.meets(flying[i].into); };
        if (std::none_of(stage.named.begin(), stage.named.end(), meets)) continue;
        flying.erase(flying.begin(), flying.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        break;
      }
      if (stage.loaded) flying.push_back({*stage.loaded, stage.bytes});
      note(flying);
      for (std::size_t i = 1; i < stage.next.size() && ways_ < kMostWays; ++i) {
        ++ways_;
        walk(flying, stage.next[i], round);
      }
      at = stage.next.front();
    }
  }
  void note(const std::deque<Load>& flying) {
    int bytes = 0;
    for (const Load& load : flying) bytes += load.bytes;
    if (bytes <= most_bytes_) return;
    most_bytes_ = bytes;
    most_loads_ = static_cast<int>(flying.size());
  }

  const std::vector<Stage>& stages_;
  int most_bytes_ = 0, most_loads_ = 0, ways_ = 0;
};

}  // namespace

MemoryUse memory_use(const KernelCode& kernel) {
  const auto [parts, are_loops] = main_parts(kernel.code);
  MemoryUse use{.main = {}, .main_is_loop = are_loops};
  for (const std::vector<Instruction>& part : parts) {
    use.main.emplace_back();
    for (const Instruction& instruction : part)
      if (const std::optional<Access> access = access_of(instruction)) use.main.back().push_back(*access);
  }
  const std::vector<Stage> stages = stages_of(parts.front());
  if (!stages.empty()) Flights(stages).follow(use);
  return use;
}

}  // namespace plumb::sass
