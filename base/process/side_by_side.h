// Many commands at once, a limited number at a time: what each one says, how it ends, and answers to what it
// says.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/process/spawn.h"

namespace plumb {

using CommandWords = std::vector<std::string>;

struct CommandEnd {
  int code = -1;  // its exit code, or 128 + n if signal n ended it; -1: it wasn't started
  bool timed_out = false;
  double seconds = 0;          // from its start to its end
  std::string output, errors;  // at most kMostOutputBytes of either; of longer errors the end
};
inline constexpr std::size_t kMostOutputBytes = 4 << 20;

struct SideBySideOptions {
  std::size_t most_at_once = 128;
  double timeout_seconds = 20;  // for each command; then it is ended with its process group
  // Called for every whole line that command `index` prints: returns what it is to read, or nothing, which
  // ends its standard input. Without it commands have nothing to read.
  std::function<std::optional<std::string>(std::size_t index, const std::string& line)> answer;
  // Called whenever commands have ended, with the number of all that have.
  std::function<void(std::size_t ended)> told;
};

// The commands' ends in their order. A program that isn't there ends with code 127 and says so in `errors`,
// as with a shell. Throws Error with exit code 128 + n if signal n came in: then every command has been
// ended.
std::vector<CommandEnd> run_side_by_side(const std::vector<CommandWords>& commands,
                                         const SideBySideOptions& options, const SignalWatch& signals);

}  // namespace plumb
