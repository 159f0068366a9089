// How a process of a run ends before its main returns: at once, whatever lock a stuck thread holds. Both
// functions are async-signal-safe.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace plumb {

// Writes the text to stderr as it is. Drops it if the reader is gone or doesn't read within a second.
inline void say_at_once(std::string_view text) {
  constexpr int kPatienceMilliseconds = 1000;
  pollfd end{.fd = STDERR_FILENO, .events = POLLOUT};
  if (::poll(&end, 1, kPatienceMilliseconds) < 1) return;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

// Runs no destructor and flushes no stream.
[[noreturn]] inline void finish(int exit_code) {
  std::_Exit(exit_code);
}

}  // namespace plumb
