// Programs that are started and waited for, with signals of a terminal or a batch system passed on to them.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/process/spawn.h"

namespace plumb {

// The folder of the sweep that a process belongs to: set for all processes of a sweep and inherited, so that
// those of a sweep that was killed can be found.
inline constexpr const char* kSweepVariable = "PLUMBLINE_SWEEP";

struct ChildCommand {
  std::vector<std::string> words;  // the first is looked for in PATH
  std::filesystem::path output;    // stdout and stderr, a new file
  std::string mark;                // value of kSweepVariable
};

struct ChildEnd {
  int code = 0;    // its exit code, or 128 + n if signal n ended it
  int signal = 0;  // that came in while it ran, was passed on, and is to end the sweep; 0: none
  bool timed_out = false;
};

// Starts the command in a process group of its own, with nothing to read, and waits for it. A signal is
// passed on; who doesn't end within `grace` then is killed, with all that has the mark. A signal that came in
// before starts nothing. `idle`: called about five times a second. Throws Error(unavailable) if the program
// can't be started, Error(cannot_create) if the output can't be created; whatever `idle` throws ends the
// child first.
ChildEnd run_child(const ChildCommand& command, const SignalWatch& signals, double timeout_seconds,
                   const std::function<void()>& idle, std::chrono::seconds grace = std::chrono::seconds(10));

// Ends every process of this user on this host that has the mark, but for this one: SIGTERM, then SIGKILL.
// Returns how many there were.
int end_marked_processes(const std::string& mark, std::chrono::milliseconds grace);

// The path of a program, given by its path or by a name in PATH; empty if there is none that can be started.
std::string path_of_program(const std::string& program);

// True if the command's first word is a program: a path, or a name in PATH.
bool can_be_started(const std::string& program);

}  // namespace plumb
