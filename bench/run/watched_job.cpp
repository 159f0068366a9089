#include "bench/run/watched_job.h"

#include <poll.h>
#include <unistd.h>

#include <optional>

#include "base/console/messages.h"
#include "base/machine/host_addresses.h"
#include "bench/links/addresses_of_hosts.h"

namespace plumb {
namespace {

// Uses write(), because a stuck thread may hold the lock of stderr. Prints nothing if the reader is gone.
void print_at_once(const std::string& program, const std::string& sentence) {
  const std::string text = lines_on(terminal_of(stderr), program + ": " + sentence) + "\n";
  constexpr int kPatienceMilliseconds = 1000;
  pollfd end{.fd = STDERR_FILENO, .events = POLLOUT};
  if (::poll(&end, 1, kPatienceMilliseconds) < 1) return;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

std::string own_address(const Job& job) {
  if (job.nodes() == 1) return "127.0.0.1";
  const auto reachable = reachable_addresses(host_addresses(job), chosen_interfaces());
  const auto own = reachable.find(addresses_of_this_host().host);
  return own == reachable.end() ? "" : own->second;
}

}  // namespace

WatchedJob::WatchedJob(const std::string& program, const WatchOptions& options, int* argc, char*** argv,
                       JobStart start) {
  if (options.on) {
    watchdog_.emplace(
        board_, WatchdogOptions{
                    .limits = {options.timeout_seconds, options.startup_timeout_seconds},
                    .print = [program](const std::string& sentence) { print_at_once(program, sentence); }});
    start.before_end = [this](int exit_code) { watchdog_->announce_end(exit_code); };
  }
  start.board = &board_;
  job_.emplace(argc, argv, start);
}

WatchedJob::~WatchedJob() {
  board_.set_phase(RunPhase::ending);
  if (watchdog_) watchdog_->disconnect();
  job_.reset();
}

void WatchedJob::watch_ranks(bool quiet) {
  if (!watchdog_ || job_->size() == 1) return;
  const std::string why_off = watchdog_->connect(*job_, own_address(*job_));
  if (why_off.empty() || job_->rank() != 0 || quiet) return;
  Messages(stderr, terminal_of(stderr), Loudness::usual)
      .warn(fmt::format(
          "ranks are not watched, so a lost one may leave all waiting: {}; open TCP ports between "
          "hosts, or pass --no-watchdog",
          why_off));
}

}  // namespace plumb
