// This process: what it was started with, and the signals that it gets.
#pragma once

#include <signal.h>

#include <filesystem>
#include <string>

#include "base/unique_fd.h"

namespace plumb {

// Empty if the variable isn't set.
std::string environment_variable(const char* name);

// The path of a program, given by its path or by a name in PATH; empty if there is none that can be started.
std::string path_of_program(const std::string& program);
std::filesystem::path path_of_this_program();

// Opens /dev/null as descriptor 0, 1 or 2 where that one is closed. Call it before any other file is opened:
// a log or a socket with one of these numbers would receive everything that is printed.
void open_standard_descriptors();

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

}  // namespace plumb
