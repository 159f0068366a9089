#include "bench/run/interruption.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <string_view>

#include "base/text.h"
#include "comm/run_end.h"
#include "results/record/schema.h"

namespace plumb {
namespace {

// A frame with all of AVX-512's and AMX's registers is 11 KiB.
constexpr std::size_t kHandlerStackBytes = std::size_t{64} * 1024;

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
  finish(exit_code);
}

// Async-signal-safe.
void end_by_shut_connection(int) {
  if (standard_reader_is_gone()) return;
  end_with(
      ": the connection to another rank or to the launcher was closed; check that every rank runs and its "
      "host can be reached\n",
      exit_code_of(SIGPIPE));
}

// Async-signal-safe.
void end_by_bus_error(int) {
  end_with(
      ": a file in memory, such as MPI's, has no room left or was truncated by another process; make room in "
      "TMPDIR and /dev/shm\n",
      static_cast<int>(ExitCode::io_error));
}

}  // namespace

void prepare_signals() {
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGXFSZ, &action, nullptr);
  action.sa_handler = end_by_shut_connection;
  ::sigaction(SIGPIPE, &action, nullptr);
  action.sa_handler = end_by_bus_error;
  ::sigaction(SIGBUS, &action, nullptr);
}

Interrupted::Interrupted(int signal, std::int64_t ended, std::int64_t asked)
    : Error(static_cast<ExitCode>(exit_code_of(signal)), interruption_text(signal, ended, asked)) {}

int exit_code_of(int signal) {
  return signal == SIGPIPE ? static_cast<int>(ExitCode::peer_lost) : 128 + signal;
}

std::atomic<Interruption*> Interruption::current_{nullptr};

Interruption::Interruption(std::chrono::seconds patience)
    : patience_seconds_(static_cast<unsigned>(patience.count())), stack_(kHandlerStackBytes) {
  ::sem_init(&told_, 0, 0);
  const stack_t stack{.ss_sp = stack_.data(), .ss_flags = 0, .ss_size = stack_.size()};
  ::sigaltstack(&stack, &stack_before_);
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  current_.store(this);
  const std::array watched{SIGALRM, SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGXCPU};
  static_assert(watched.size() == std::tuple_size_v<decltype(before_)>);
  for (std::size_t i = 0; i < watched.size(); ++i) {
    before_[i].first = watched[i];
    ::sigaction(watched[i], nullptr, &before_[i].second);
    if (watched[i] == SIGALRM || watched[i] == SIGPIPE || before_[i].second.sa_handler != SIG_IGN)
      ::sigaction(watched[i], &action, nullptr);
  }
}

Interruption::~Interruption() {
  ::alarm(0);
  while (current_.exchange(nullptr) == nullptr) {
  }
  for (const auto& [signal, action] : before_) ::sigaction(signal, &action, nullptr);
  ::sigaltstack(&stack_before_, nullptr);
  ::sem_destroy(&told_);
}

void Interruption::wait(std::chrono::milliseconds longest) {
  timespec until{};
  ::clock_gettime(CLOCK_MONOTONIC, &until);
  const std::int64_t end_ns = until.tv_nsec + std::chrono::nanoseconds(longest).count();
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  until.tv_sec += end_ns / kNsPerSecond;
  until.tv_nsec = end_ns % kNsPerSecond;
  while (::sem_clockwait(&told_, CLOCK_MONOTONIC, &until) != 0 && errno == EINTR) {
  }
}

// Calls async-signal-safe functions only.
void Interruption::handle(int signal) {
  if (signal == SIGPIPE && standard_reader_is_gone()) return;
  Interruption* const run = current_.exchange(nullptr);
  if (run == nullptr) finish(exit_code_of(signal));  // another one is being handled, or the run is over
  run->take(signal);
  current_.store(run);
  if (signal == SIGPIPE)
    for (;;) ::pause();
}

void Interruption::take(int signal) {
  const int first = taken_.load() & ~kLooked;
  if (first != 0 && (signal == SIGPIPE || (signal == SIGXCPU && first == SIGXCPU))) return;
  if (first != 0) finish(exit_code_of(first));
  if (signal == SIGALRM) return;  // somebody else's
  taken_.store(signal | (signal != SIGPIPE && looks_.load() ? kLooked : 0));
  // MPI may crash where other ranks are gone already: an end like any second signal's.
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_ONSTACK;
  for (const int crash : {SIGABRT, SIGBUS, SIGSEGV}) ::sigaction(crash, &action, nullptr);
  ::alarm(patience_seconds_);
  ::sem_post(&told_);
}

}  // namespace plumb
