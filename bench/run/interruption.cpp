#include "bench/run/interruption.h"

#include <unistd.h>

#include "base/text.h"
#include "results/record/schema.h"

namespace plumb {
namespace {

// A frame with all of AVX-512's and AMX's registers is 11 KiB.
constexpr std::size_t kHandlerStackBytes = 64 * 1024;

std::string interruption_text(int signal, std::int64_t ended, std::int64_t asked) {
  const std::string count =
      asked == 0 ? counted(ended, "iteration") : fmt::format("{} of {} iterations", ended, asked);
  return fmt::format("{} by {} after {}", kInterrupted, signal == SIGINT ? "SIGINT" : "SIGTERM", count);
}

}  // namespace

Interrupted::Interrupted(int signal, std::int64_t ended, std::int64_t asked)
    : Error(static_cast<ExitCode>(128 + signal), interruption_text(signal, ended, asked)) {}

std::atomic<Interruption*> Interruption::current_{nullptr};

Interruption::Interruption(std::chrono::seconds patience)
    : patience_seconds_(static_cast<unsigned>(patience.count())), stack_(kHandlerStackBytes) {
  const stack_t stack{.ss_sp = stack_.data(), .ss_flags = 0, .ss_size = stack_.size()};
  ::sigaltstack(&stack, &stack_before_);
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  current_.store(this);
  const std::array watched{SIGALRM, SIGINT, SIGTERM};
  for (std::size_t i = 0; i < watched.size(); ++i) {
    before_[i].first = watched[i];
    ::sigaction(watched[i], nullptr, &before_[i].second);
    if (watched[i] == SIGALRM || before_[i].second.sa_handler != SIG_IGN)
      ::sigaction(watched[i], &action, nullptr);
  }
}

void Interruption::end() {
  if (std::exchange(ended_, true)) return;
  ::alarm(0);
  while (current_.exchange(nullptr) == nullptr) {
  }
  for (const auto& [signal, action] : before_) ::sigaction(signal, &action, nullptr);
  ::sigaltstack(&stack_before_, nullptr);
}

// Calls async-signal-safe functions only.
void Interruption::handle(int signal) {
  Interruption* const run = current_.exchange(nullptr);
  if (run == nullptr) ::_exit(128 + signal);  // another one is being handled, or the run is over
  run->take(signal);
  current_.store(run);
}

void Interruption::take(int signal) {
  const int first = signal_.load();
  if (first != 0) ::_exit(128 + first);
  if (signal == SIGALRM) return;  // somebody else's
  signal_.store(signal);
  // MPI may crash where other ranks are gone already: an end like any second signal's.
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_ONSTACK;
  for (const int crash : {SIGABRT, SIGBUS, SIGSEGV}) ::sigaction(crash, &action, nullptr);
  ::alarm(patience_seconds_);
}

}  // namespace plumb
