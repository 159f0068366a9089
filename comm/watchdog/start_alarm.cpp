#include "comm/watchdog/start_alarm.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "comm/launched_as.h"
#include "comm/watchdog/quiet_thread.h"

namespace plumb {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenPhaseLooks{200};
constexpr double kRankZeroFirstSeconds = 3, kOthersFirstSeconds = 10;
constexpr std::chrono::seconds kPatienceWithItsLauncher{5};

double seconds_since(std::int64_t steady_ns) {
  return std::chrono::duration<double>(steady_clock::now().time_since_epoch() -
                                       std::chrono::nanoseconds(steady_ns))
      .count();
}

std::string late_start_text(RunPhase phase, double seconds) {
  const std::string_view remedy =
      phase == RunPhase::starting
          ? "see whether every rank runs this program, and whether TMPDIR and /dev/shm have room"
      : phase == RunPhase::ending ? "see whether the other ranks and their launchers still run"
                                  : "see what it waits for, as for a file that another process has locked";
  return fmt::format("rank {} on {} (pid {}) has been in {} for {:.0f} s; {} (gdb -p {}), or raise {}",
                     launched_as().rank, own_host(), ::getpid(), name_of(phase), seconds, remedy, ::getpid(),
                     phase == RunPhase::ending ? "--timeout-s" : "--startup-timeout-s");
}

}  // namespace

StartAlarm::StartAlarm(const StatusBoard& board, StartAlarmOptions options)
    : board_(board),
      options_(std::move(options)),
      thread_(quiet_thread([this](const std::stop_token& stop) { run(stop); })) {
  auto at_exit = std::make_unique<AtExit>(this);
  if (::on_exit(note_exit, at_exit.get()) == 0) at_exit_ = at_exit.release();
}

void StartAlarm::mpi_has_started() {
  if (at_exit_) at_exit_->alarm = nullptr;
}

void StartAlarm::note_exit(int, void* state) {
  const std::unique_ptr<AtExit> at_exit(static_cast<AtExit*>(state));
  if (!at_exit->alarm) return;
  at_exit->alarm->options_.tell(fmt::format(
      "rank {} on {} (pid {}): MPI can't start; see what it says, and whether TMPDIR and /dev/shm "
      "have room",
      launched_as().rank, own_host(), ::getpid()));
  at_exit->alarm->end_launcher();
  ::_exit(static_cast<int>(ExitCode::internal));
}

void StartAlarm::end_launcher() const {
  if (!launcher_) return;
  if (!launcher_->ends_ranks()) end_slurm_step();
  end_launcher_later(*launcher_, kPatienceWithItsLauncher);
}

void StartAlarm::others_watch() {
  const std::lock_guard lock(mutex_);
  others_watch_ = true;
}

void StartAlarm::run(const std::stop_token& stop) {
  const double extra = launched_as().rank == 0 ? 0 : kRankZeroFirstSeconds;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, stop, kBetweenPhaseLooks, [&] { return stop.stop_requested(); })) {
    if (stop.stop_requested()) return;
    const RunStatus status = board_.status();
    const double seconds = seconds_since(status.phase_since_ns);
    double limit = extra;
    if (status.phase == RunPhase::ending)
      limit += options_.end_timeout_seconds;
    else if (status.phase < RunPhase::warmup)
      limit += options_.startup_timeout_seconds + (others_watch_ ? kOthersFirstSeconds : 0);
    else
      continue;
    if (seconds <= limit) continue;
    options_.tell(late_start_text(status.phase, seconds));
    end_launcher();
    ::_exit(static_cast<int>(ExitCode::peer_lost));
  }
}

}  // namespace plumb
