// Starting programs, and the signals that a program which waits for them reads in the meantime.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace plumb {

// While this lives, SIGINT, SIGTERM, SIGHUP and the end of a child are held back from the process and read by
// next() instead.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // The signal that asks this process to end, of what came since the last call; 0: none did.
  int next() const;
  int descriptor() const { return descriptor_.get(); }  // can be read when next() has something to tell

 private:
  sigset_t before_{};
  UniqueFd descriptor_;
};

// Descriptors for what a program prints; it has nothing to read.
struct ProgramStreams {
  int output = -1, errors = -1;
};

// Starts a program in a process group of its own with default signals; the first word is looked for in PATH.
// Returns its process id, or the negative errno.
pid_t spawn_program(std::vector<std::string> words, const ProgramStreams& streams);

// The path of a program, given by its path or by a name in PATH; empty if there is none that can be started.
std::string path_of_program(const std::string& program);

// True if the command's first word is a program: a path, or a name in PATH.
bool can_be_started(const std::string& program);

}  // namespace plumb
