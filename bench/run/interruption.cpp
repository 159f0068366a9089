#include "bench/run/interruption.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include "base/text.h"
#include "results/record/schema.h"

namespace plumb {
namespace {

constexpr std::array kOfLauncher{SIGINT, SIGTERM, SIGHUP, SIGXCPU};
constexpr std::array kOfCrash{SIGABRT, SIGBUS, SIGSEGV};

// Global, because a handler gets nothing but the number of the signal. 0: no thread watches.
std::atomic<pthread_t> watching_thread{0};
static_assert(std::atomic<pthread_t>::is_always_lock_free);

std::string interruption_text(int signal, std::int64_t ended, std::int64_t asked) {
  const std::string where =
      fmt::format("at iteration {}{}", ended, asked == 0 ? "" : fmt::format(" of {}", asked));
  if (signal == SIGPIPE)
    return fmt::format(
        "the connection to another rank was closed {}; check that every other rank runs and its host can be "
        "reached",
        where);
  const char* name = ::sigabbrev_np(signal);
  return fmt::format("{} by SIG{}, ended by signal {} {}", kInterrupted, name ? name : "?", signal, where);
}

// Async-signal-safe.
bool reader_is_gone(int descriptor) {
  pollfd asked{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return ::poll(&asked, 1, 0) == 1 && (asked.revents & (POLLERR | POLLHUP)) != 0;
}

bool standard_reader_is_gone() {
  return reader_is_gone(STDOUT_FILENO) || reader_is_gone(STDERR_FILENO);
}

// Async-signal-safe.
[[noreturn]] void end_with(std::string_view sentence, int exit_code) {
  say_at_once(program_invocation_short_name);
  say_at_once(sentence);
  std::_Exit(exit_code);
}

// Async-signal-safe. The watching thread ends the process.
void pass_on(int signal) {
  if (signal == SIGPIPE && standard_reader_is_gone()) return;
  const pthread_t watching = watching_thread;
  if (watching == 0) std::_Exit(exit_code_of(signal));
  ::pthread_kill(watching, signal);
  for (;;) ::pause();
}

// Async-signal-safe.
void end_by_bus_error(int) {
  end_with(
      ": a file in memory, such as MPI's, has no room left or was truncated by another process; make room in "
      "TMPDIR and /dev/shm\n",
      static_cast<int>(ExitCode::io_error));
}

void unblock(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

// Ends the process as the signal would if no thread blocked it.
[[noreturn]] void end_without_run(int signal) {
  if (signal == SIGPIPE)
    end_with(
        ": the connection to another rank or to the launcher was closed; check that every rank runs and its "
        "host can be reached\n",
        exit_code_of(signal));
  unblock(signal);
  ::raise(signal);
  std::_Exit(exit_code_of(signal));  // a library handles it
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_handler = handler;
  ::sigaction(signal, &action, nullptr);
}

// Returns -1 if no signal came within the patience. Keeps waiting when a stopped process goes on.
int next_signal(const sigset_t& set, const timespec* patience) {
  int signal = -1;
  while ((signal = ::sigtimedwait(&set, nullptr, patience)) == -1 && errno == EINTR) continue;
  return signal;
}

}  // namespace

Interrupted::Interrupted(int signal, std::int64_t ended, std::int64_t asked)
    : Error(static_cast<ExitCode>(exit_code_of(signal)), interruption_text(signal, ended, asked)) {}

void say_at_once(std::string_view text) {
  constexpr int kPatienceMilliseconds = 1000;
  pollfd end{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&end, 1, kPatienceMilliseconds) < 1) return;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

int exit_code_of(int signal) {
  return signal == SIGPIPE ? static_cast<int>(ExitCode::peer_lost) : 128 + signal;
}

Interruption::Interruption() {
  handle(SIGXFSZ, SIG_IGN);
  handle(SIGPIPE, pass_on);
  handle(SIGBUS, end_by_bus_error);
  sigemptyset(&watched_);
  sigaddset(&watched_, SIGPIPE);
  for (const int signal : kOfLauncher) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN) sigaddset(&watched_, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &watched_, nullptr);
  thread_ = std::thread([this] { watch(); });
  unblock(SIGPIPE);
  watching_thread = thread_.native_handle();
}

Interruption::~Interruption() {
  watching_thread = 0;
  is_over_ = true;
  ::pthread_kill(thread_.native_handle(), SIGPIPE);
  thread_.join();
  ::pthread_sigmask(SIG_UNBLOCK, &watched_, nullptr);
}

void Interruption::watch() {
  const int first = next_signal(watched_, nullptr);
  if (is_over_) return;
  const timespec patience{.tv_sec = patience_seconds_, .tv_nsec = 0};
  if (patience.tv_sec == 0) end_without_run(first);
  (first != SIGPIPE && looks_ ? looked_at_ : unseen_) = first;
  told_.release();
  sigset_t ends = watched_;
  if (first == SIGXCPU) sigdelset(&ends, first);
  // MPI may crash where other ranks are gone already: an end like any second signal's.
  for (const int crash : kOfCrash) {
    sigaddset(&ends, crash);
    handle(crash, pass_on);
  }
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  while (next_signal(ends, &patience) == SIGPIPE && !is_over_) continue;
  if (!is_over_) std::_Exit(exit_code_of(first));
}

}  // namespace plumb
