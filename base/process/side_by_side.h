// Programs that are started and waited for: many commands at once, or one whose signals are passed on.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/process/this_process.h"

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
  // Called whenever commands have ended, with the number of all that have.
  std::function<void(std::size_t ended)> told;
};

// The commands' ends in their order. A program that isn't there ends with code 127 and says so in `errors`,
// as with a shell. Throws Error with exit code 128 + n if signal n came in: then every command has been
// ended. Each command also gets SIGTERM if this process dies.
std::vector<CommandEnd> run_side_by_side(const std::vector<CommandWords>& commands,
                                         const SideBySideOptions& options, const SignalWatch& signals);

struct ChildEnd {
  int code = 0;    // as CommandEnd's
  int signal = 0;  // that came in while it ran, was passed on, and is to end the caller; 0: none
  bool timed_out = false;
};

// Runs one command that prints into a new file, in a process group that gets the signals of this process.
// A group that hasn't ended 10 s after a signal or the time limit (0: none) is killed. If a signal has
// come in already, nothing is started. `idle` is called about five times a second. Throws Error(unavailable)
// if there is no such program, Error(cannot_create) if the output can't be created.
ChildEnd run_child(const CommandWords& words, const std::filesystem::path& output, const SignalWatch& signals,
                   double timeout_seconds, const std::function<void()>& idle);

}  // namespace plumb
