#include "comm/run_end.h"

#include <poll.h>
#include <unistd.h>

#include <cstdlib>

namespace plumb {

void say_at_once(std::string_view text) {
  constexpr int kPatienceMilliseconds = 1000;
  pollfd end{.fd = STDERR_FILENO, .events = POLLOUT};
  if (::poll(&end, 1, kPatienceMilliseconds) < 1) return;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

void finish(int exit_code) {
  std::_Exit(exit_code);
}

}  // namespace plumb
