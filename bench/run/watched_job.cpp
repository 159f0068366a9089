#include "bench/run/watched_job.h"

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <utility>

#include "base/console/messages.h"
#include "base/machine/host_addresses.h"
#include "bench/links/addresses_of_hosts.h"
#include "comm/watchdog/launcher.h"

namespace plumb {
namespace {

constexpr std::chrono::seconds kPatienceWithLauncher{30};

// By write(), as another thread may be stuck while it holds the lock of stderr; not at all if nobody reads
// it.
void tell_at_once(const std::string& program, const std::string& sentence) {
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
                       JobStart start)
    : program_(program), options_(options) {
  const auto tell = [program](const std::string& sentence) { tell_at_once(program, sentence); };
  if (options_.on)
    alarm_.emplace(board_, StartAlarmOptions{.startup_timeout_seconds = options_.startup_timeout_seconds,
                                             .end_timeout_seconds = options_.timeout_seconds,
                                             .tell = tell});
  start.board = &board_;
  start.before_messages = [this, then = std::move(start.before_messages)](const Job& job) {
    if (alarm_) alarm_->mpi_has_started();
    if (then) then(job);
  };
  start.before_end = [this](int exit_code) {
    // Open MPI's mpirun sometimes locks up while it ends the other ranks.
    const std::optional<Launcher> launcher = launcher_of_this_process();
    if (options_.on && launcher) end_launcher_later(*launcher, kPatienceWithLauncher);
    if (watchdog_) watchdog_->stand_down(exit_code);
  };
  job_.emplace(argc, argv, start);
}

WatchedJob::~WatchedJob() {
  board_.set_phase(RunPhase::ending);
  end_watch();
  job_.reset();
}

void WatchedJob::watch_ranks(bool quiet) {
  if (!options_.on || job_->size() == 1) return;
  watchdog_ = std::make_unique<Watchdog>(
      *job_, board_,
      WatchdogOptions{
          .limits = {options_.timeout_seconds, options_.startup_timeout_seconds},
          .address = own_address(*job_),
          .tell = [program = program_](const std::string& sentence) { tell_at_once(program, sentence); }});
  alarm_->announce_through([this](int exit_code) { watchdog_->stand_down_at_once(exit_code); });
  watchdog_->connect(*job_);
  const std::string why_off = watchdog_->why_off();
  if (why_off.empty()) {
    alarm_->others_watch();
    return;
  }
  end_watch();
  if (job_->rank() == 0 && !quiet)
    Messages(stderr, terminal_of(stderr), Loudness::usual)
        .warn(
            fmt::format("ranks aren't watched, so one that is lost may leave all waiting: {}; open TCP ports "
                        "between hosts, or give --no-watchdog",
                        why_off));
}

void WatchedJob::end_watch() {
  if (alarm_) alarm_->announce_through({});
  watchdog_.reset();
}

}  // namespace plumb
