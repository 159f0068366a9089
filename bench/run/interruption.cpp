#include "bench/run/interruption.h"

#include <unistd.h>

#include "base/text.h"
#include "results/record/schema.h"

namespace plumb {
namespace {

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
    : patience_seconds_(static_cast<unsigned>(patience.count())) {
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
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
  for (const int crash : {SIGABRT, SIGBUS, SIGSEGV}) ::sigaction(crash, &action, nullptr);
  ::alarm(patience_seconds_);
}

}  // namespace plumb
