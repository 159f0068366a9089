#include "comm/watchdog/start_alarm.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "comm/launched_as.h"
#include "comm/watchdog/now_seconds.h"
#include "comm/watchdog/quiet_thread.h"

namespace plumb {
namespace {

constexpr std::chrono::milliseconds kBetweenPhaseLooks{200};
constexpr double kBetweenHostLooks = 1;
constexpr double kPause = 2;  // between two looks: this process was stopped
// How much longer than a rank that can name another one.
constexpr double kRankZeroWaits = 2, kFirstOfHostWaits = 5, kOthersWait = 8;
constexpr double kPatienceWithVerdict = 10;
// In MPI_Init on a full disk.
constexpr double kPatienceWithFullDisk = 10;
constexpr std::uintmax_t kFullDiskBytes = 1 << 20;
constexpr std::chrono::seconds kPatienceWithItsLauncher{5}, kFirstTells{3}, kAlarmTells{10};
// Longer than it takes other ranks to tell that this one is gone.
constexpr std::chrono::seconds kFencePatience{8};

double seconds_since(std::int64_t steady_ns) {
  return now_seconds() - std::chrono::duration<double>(std::chrono::nanoseconds(steady_ns)).count();
}

std::string named(int rank, pid_t pid) {
  return fmt::format("rank {} on {} (pid {})", rank, own_host(), pid);
}

// While MPI starts: whose, and in which process (MPI may fork).
std::atomic<StartAlarm*> starting{nullptr};
std::atomic<pid_t> starting_pid{0};

// What the kernel says of the page that the process couldn't have; 0: nothing yet.
std::atomic<int> bus_error{0};
static_assert(std::atomic<int>::is_always_lock_free);

// The alarm's thread tells: this one may hold any lock.
void leave_bus_error_to_alarm(int, siginfo_t* info, void*) {
  if (info->si_code <= 0) {  // sent by a process
    ::signal(SIGBUS, SIG_DFL);
    ::raise(SIGBUS);
    return;
  }
  bus_error.store(info->si_code);
  timespec left{.tv_sec = kAlarmTells.count(), .tv_nsec = 0};
  while (::nanosleep(&left, &left) != 0) {
  }
  std::_Exit(static_cast<int>(ExitCode::io_error));
}

void set_bus_error_handler(bool on) {
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  if (on)
    action.sa_sigaction = leave_bus_error_to_alarm;
  else
    action.sa_handler = SIG_DFL;
  ::sigaction(SIGBUS, &action, nullptr);
}

std::string failed_start_text() {
  return fmt::format("{}: MPI can't start; see what it says, and whether TMPDIR and /dev/shm have room",
                     named(launched_as().rank, ::getpid()));
}

std::filesystem::path tmpdir() {
  std::error_code failed;
  return std::filesystem::temp_directory_path(failed);
}

// Some file systems tell no sizes.
bool is_full(const std::filesystem::path& folder) {
  std::error_code failed;
  const std::filesystem::space_info space = std::filesystem::space(folder, failed);
  return !failed && space.capacity > 0 && space.available < kFullDiskBytes;
}

// By a thread of its own, which may wait for ever, as for a file server that is gone.
std::shared_ptr<std::atomic<bool>> find_whether_full(const std::filesystem::path& folder) {
  auto found = std::make_shared<std::atomic<bool>>(false);
  quiet_thread([=] { *found = is_full(folder); }).detach();
  return found;
}

std::string bus_error_text(int code) {
  const std::string who = named(launched_as().rank, ::getpid());
  if (code == BUS_MCEERR_AR || code == BUS_MCEERR_AO)
    return fmt::format("{}: memory of this host is broken; look at its kernel log (dmesg)", who);
  return fmt::format(
      "{}: a file in memory has no room left, or was cut off by another process; see whether TMPDIR and "
      "/dev/shm have room",
      who);
}

std::string gone_text(const StartedRank& rank) {
  return fmt::format(
      "{} is gone, it was killed or crashed before ranks watch each other; look at what it printed and at "
      "its host's kernel log (dmesg)",
      named(rank.rank, rank.pid));
}

}  // namespace

void note_end_of_process() {
  StartAlarm::note_end();
}

StartAlarm::StartAlarm(const StatusBoard& board, StartAlarmOptions options)
    : board_(board), options_(std::move(options)), tmpdir_(tmpdir()), looked_at_(now_seconds()) {
  starting_pid = ::getpid();
  starting = this;
  std::atexit(note_end_of_process);
  set_bus_error_handler(true);
  if (launcher_) fence_.emplace(*launcher_, kFencePatience);
  look_at_host();
  thread_ = quiet_thread([this](const std::stop_token& stop) { run(stop); });
}

StartAlarm::~StartAlarm() {
  mpi_has_started();
  set_bus_error_handler(false);
}

void StartAlarm::mpi_has_started() {
  starting = nullptr;
}

void StartAlarm::note_end() {
  if (starting_pid != ::getpid()) return;
  if (StartAlarm* const alarm = starting.exchange(nullptr)) alarm->tell_of_failed_start();
}

void StartAlarm::tell_of_failed_start() {
  const std::lock_guard lock(mutex_);
  if (launcher_ && launcher_->is_gone()) end_without_launcher(RunPhase::starting);
  end_as_one_of_host(failed_start_text(), ExitCode::internal);
}

void StartAlarm::end_without_launcher(RunPhase phase) {
  end_as_one_of_host(fmt::format("the launcher that started {} is gone, which was in {}; start the job again",
                                 named(launched_as().rank, ::getpid()), name_of(phase)),
                     ExitCode::peer_lost);
}

// Where all ranks of a host may meet the same, the lowest of them tells.
void StartAlarm::end_as_one_of_host(const std::string& sentence, ExitCode exit_code) {
  look_at_host();
  const bool is_first = seen_.empty() || seen_.begin()->first >= launched_as().rank;
  if (!is_first) {
    std::this_thread::sleep_for(kFirstTells);
    look_at_host();
  }
  const bool is_told =
      !is_first && std::ranges::find(there_, seen_.begin()->second, &StartedRank::pid) == there_.end();
  end(is_told ? "" : sentence, exit_code);
}

void StartAlarm::end_launcher() const {
  if (!launcher_) return;
  if (!launcher_->ends_ranks()) end_slurm_step();
  end_launcher_later(*launcher_, kPatienceWithItsLauncher);
}

void StartAlarm::announce_through(std::function<void(int)> announce) {
  const std::lock_guard lock(mutex_);
  announce_ = std::move(announce);
}

void StartAlarm::others_watch() {
  const std::lock_guard lock(mutex_);
  others_watch_ = true;
}

void StartAlarm::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, stop, kBetweenPhaseLooks, [&] { return stop.stop_requested(); })) {
    if (stop.stop_requested()) return;
    if (const int code = bus_error.load()) end_as_one_of_host(bus_error_text(code), ExitCode::io_error);
    look(board_.status());
  }
}

void StartAlarm::look(const RunStatus& status) {
  const double now = now_seconds();
  const bool ends = status.phase == RunPhase::ending;
  const bool watches_alone = !others_watch_ && !ends;
  if (watches_alone && now - host_looked_at_ > kBetweenHostLooks) look_at_host();
  const std::optional<StartedRank> gone = watches_alone ? gone_rank() : std::nullopt;
  if (!gone)
    missed_since_.reset();
  else if (!missed_since_)
    missed_since_ = now;
  if (watches_alone && launcher_ && launcher_->is_gone()) end_without_launcher(status.phase);
  const double seconds = seconds_in_phase(status, now);
  const double limit = ends ? options_.end_timeout_seconds
                            : options_.startup_timeout_seconds + (others_watch_ ? kPatienceWithVerdict : 0);
  // There Open MPI sometimes waits for ever.
  if (starting == this && seconds > kPatienceWithFullDisk) {
    if (!tmpdir_is_full_) tmpdir_is_full_ = find_whether_full(tmpdir_);
    if (*tmpdir_is_full_) end_as_one_of_host(failed_start_text(), ExitCode::internal);
  }
  const bool has_limit = ends || status.phase < RunPhase::warmup;
  const bool is_late = has_limit && seconds > limit;
  if (gone) {
    // Later it may be one that has told of the lateness.
    const double missed = now - *missed_since_;
    const double patience = options_.lost_rank_seconds + (is_first_of_host() ? 0 : kOthersWait) +
                            (is_late && missed < seconds - limit ? kOthersWait : 0);
    if (missed > patience) end(gone_text(*gone), ExitCode::peer_lost);
    return;
  }
  if (!is_late) return;
  if (now - host_looked_at_ > kBetweenHostLooks) look_at_host();
  const std::optional<StartedRank> lowest_gone = gone_rank();
  const bool may_be_told = lowest_gone && lowest_gone->rank < launched_as().rank;
  const double more = may_be_told || !is_first_of_host() ? kOthersWait
                      : stopped_rank()                   ? 0
                      : launched_as().rank == 0          ? kRankZeroWaits
                                                         : kFirstOfHostWaits;
  if (seconds > limit + more) end(late_text(status.phase, seconds), ExitCode::peer_lost);
}

double StartAlarm::seconds_in_phase(const RunStatus& status, double now) {
  if (std::exchange(phase_since_ns_, status.phase_since_ns) != status.phase_since_ns) paused_seconds_ = 0;
  const double since_look = now - std::exchange(looked_at_, now);
  const double seconds = seconds_since(status.phase_since_ns);
  if (since_look > kPause) paused_seconds_ += std::min(since_look, seconds);
  return seconds - paused_seconds_;
}

void StartAlarm::look_at_host() {
  host_looked_at_ = now_seconds();
  there_ = launcher_ ? ranks_started_by(*launcher_) : std::vector<StartedRank>();
  for (const StartedRank& one : there_) seen_[one.rank] = one.pid;
}

std::optional<StartedRank> StartAlarm::gone_rank() const {
  for (const auto& [rank, pid] : seen_)
    if (std::ranges::find(there_, pid, &StartedRank::pid) == there_.end())
      return StartedRank{.rank = rank, .pid = pid};
  return std::nullopt;
}

std::optional<StartedRank> StartAlarm::stopped_rank() const {
  const auto stopped = std::ranges::find(there_, true, &StartedRank::stopped);
  return stopped == there_.end() ? std::nullopt : std::optional(*stopped);
}

bool StartAlarm::is_first_of_host() const {
  const auto first = std::ranges::find(there_, false, &StartedRank::stopped);
  return first == there_.end() || first->pid == ::getpid();
}

std::string StartAlarm::late_text(RunPhase phase, double seconds) const {
  const LaunchedAs own = launched_as();
  const std::string where = fmt::format("has been in {} for {:.0f} s", name_of(phase), seconds);
  const std::string_view option = phase == RunPhase::ending ? "--timeout-s" : "--startup-timeout-s";
  if (const std::optional<StartedRank> stopped = stopped_rank())
    return fmt::format("{} is stopped, and rank {} {}; let it go on (kill -CONT {}), or raise {}",
                       named(stopped->rank, stopped->pid), own.rank, where, stopped->pid, option);
  const bool starts = phase == RunPhase::starting;
  const bool has_other_hosts = !there_.empty() && static_cast<int>(there_.size()) < own.size;
  std::string known;
  if (starts && has_other_hosts) {
    for (const StartedRank& one : there_) append_part(known, std::to_string(one.rank), ", ");
    known = fmt::format("; of {} ranks this host runs {}", own.size, known);
  }
  const bool may_receive_too_early =
      has_other_hosts && launcher_ && !launcher_->ends_ranks() && std::getenv("SLURM_PMIX_FENCE") == nullptr;
  const std::string_view remedy =
      starts && may_receive_too_early
          ? "see whether another rank crashed (set SLURM_PMIX_FENCE=ring for srun) or runs another program, "
            "and whether TMPDIR and /dev/shm have room"
      : starts ? "see whether every rank runs this program, and whether TMPDIR and /dev/shm have room"
      : phase == RunPhase::ending ? "see whether the other ranks and their launchers still run"
                                  : "see what it waits for, as for a file that another process has locked";
  return fmt::format("{} {}{}; {} (gdb -p {}), or raise {}", named(own.rank, ::getpid()), where, known,
                     remedy, ::getpid(), option);
}

void StartAlarm::end(const std::string& sentence, ExitCode code) {
  const int exit_code = static_cast<int>(code);
  if (announce_) announce_(exit_code);
  if (!sentence.empty()) options_.tell(sentence);
  end_launcher();
  std::_Exit(exit_code);
}

}  // namespace plumb

// Instead of the C library's, for MPI too: Open MPI 4.1 ends by it where MPI_Init fails.
extern "C" void _exit(int exit_code) {
  plumb::note_end_of_process();
  for (;;) ::syscall(SYS_exit_group, exit_code);
}
