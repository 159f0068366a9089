#include "comm/watchdog/watchdog.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/machine/host_addresses.h"
#include "base/paths.h"
#include "base/steady_clock.h"
#include "base/text.h"
#include "comm/launched_as.h"
#include "comm/watchdog/quiet_thread.h"

namespace plumb {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenLooks{200};
constexpr double kMostBetweenLooks = 1;                          // after that this process was stopped
constexpr double kHeartbeatSeconds = 1, kHeartbeatShare = 0.25;  // of the timeout
constexpr std::chrono::seconds kPatienceToConnect{20};
// Extra grace, so that the rank that can say most prints first, and its launcher ends the others.
constexpr double kGraceForRank0 = 2, kGraceForVerdict = 10, kGraceForLowerRanks = 8;
constexpr double kSignalOfAllRanks = 1;  // within which it reaches rank 0, too
constexpr std::chrono::seconds kPatienceForVerdict{2}, kPatienceForAnnouncement{2};
constexpr std::chrono::seconds kPatienceWithCall{5}, kPatienceWithFirst{6}, kPatienceWithLauncher{5},
    kPatienceWithOthers{30};
constexpr int kPeerLost = static_cast<int>(ExitCode::peer_lost);
constexpr char kBetweenFields = '\n';

std::string late_text(int rank, RunPhase phase, double seconds) {
  const std::string who = fmt::format("rank {} on {} (pid {})", rank, own_host(), ::getpid());
  const std::string_view remedy =
      phase == RunPhase::starting ? "see whether every rank runs this program, and whether one crashed"
      : phase == RunPhase::ending ? "see whether the other ranks and their launchers still run"
                                  : "see what it waits for, as for a file that another process has locked";
  return fmt::format("{} has been in {} for {:.0f} s; {} (gdb -p {}), or raise {}", who, name_of(phase),
                     seconds, remedy, ::getpid(),
                     phase == RunPhase::ending ? "--timeout-s" : "--startup-timeout-s");
}

}  // namespace

Watchdog::Watchdog(const StatusBoard& board, WatchdogOptions options)
    : board_(board),
      options_(std::move(options)),
      launched_rank_(launched_as().rank),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  thread_ = quiet_thread([this](const std::stop_token& stop) { run(stop); });
}

Watchdog::~Watchdog() {
  thread_.request_stop();
  wake();
}

void Watchdog::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

std::string Watchdog::connect(const Job& job, const std::string& address) {
  rank_ = job.rank();
  Listener listener;
  std::string why = gather_identities(job, listener, address);
  Token token = rank_ == 0 ? random_token() : Token();
  job.broadcast(token);
  if (!why.empty()) return why;
  auto channel = rank_ == 0 ? std::make_unique<Channel>(listener, job.size(), token, kPatienceToConnect)
                            : std::make_unique<Channel>(rank_0_at_, rank_, token, kPatienceToConnect);
  why = why_not_connected(*channel);
  {
    const std::lock_guard lock(mutex_);
    new_channel_ = std::move(channel);
    speaks_ = true;
  }
  wake();
  for (const std::string& one : job.all_gather(why))
    if (!one.empty()) {
      disconnect();
      return one;
    }
  const std::lock_guard lock(mutex_);
  watches_ = true;
  return "";
}

// Returns why ranks can't be watched, the same on all ranks.
std::string Watchdog::gather_identities(const Job& job, Listener& listener, const std::string& address) {
  std::string why;
  try {
    if (rank_ == 0) listener = listen_at(address);
  } catch (const Error& error) {
    why = fmt::format("on {}: {}", own_host(), error.what());
  }
  const std::string own =
      fmt::format("{}\n{}\n{}\n{}\n{}", own_host(), ::getpid(), address, listener.at.port, why);
  for (const std::string& text : job.all_gather(own)) {
    const std::vector<std::string> fields = split(text, kBetweenFields);
    if (identities_.empty()) {
      rank_0_at_ = {fields.at(2), std::atoi(fields.at(3).c_str())};
      why = fields.at(4);
    }
    identities_.push_back({fields.at(0), std::strtoll(fields.at(1).c_str(), nullptr, 10)});
  }
  return why;
}

// Rank 0 knows.
std::string Watchdog::why_not_connected(const Channel& channel) const {
  for (std::size_t rank = 1; rank_ == 0 && rank < identities_.size(); ++rank)
    if (!channel.is_connected(static_cast<int>(rank)))
      return fmt::format("rank {} on {} cannot reach rank 0 at {} port {}", rank,
                         printable(identities_[rank].host), rank_0_at_.address, rank_0_at_.port);
  return "";
}

void Watchdog::disconnect() {
  Lock lock(mutex_);
  if (condemned_) wait_for_the_end(lock);
  if (!std::exchange(speaks_, false)) return;
  wake();
  changed_.wait_for(lock, kPatienceForAnnouncement, [&] { return !watches_; });
}

void Watchdog::set_before_exit(std::function<void(const std::string&, int)> before_exit) {
  const std::lock_guard lock(before_exit_mutex_);
  before_exit_ = std::move(before_exit);
}

void Watchdog::announce_end(int exit_code) {
  Lock lock(mutex_);
  if (condemned_) wait_for_the_end(lock);
  if (std::exchange(announced_, true)) return;
  // Open MPI's mpirun sometimes locks up while it ends the other ranks.
  if (launcher_) end_launcher_later(*launcher_, kPatienceWithOthers);
  if (!speaks_) return;
  const auto is_settled = [&] { return condemned_ || settled_; };
  // What MPI says of a rank that is gone follows from what the watching thread says.
  if (exit_code == kPeerLost && changed_.wait_for(lock, kPatienceForVerdict, is_settled))
    wait_for_the_end(lock);
  own_end_ = exit_code;
  wake();
  changed_.wait_for(lock, kPatienceForAnnouncement, is_settled);
  if (condemned_) wait_for_the_end(lock);
}

// The watching thread ends the process.
void Watchdog::wait_for_the_end(Lock& lock) {
  for (;;) changed_.wait(lock);
}

void Watchdog::run(const std::stop_token& stop) {
  try {
    for (double looked = steady_seconds(); !stop.stop_requested();) {
      exchange_messages();
      const double now = steady_seconds();
      watched_seconds_ += std::min(now - std::exchange(looked, now), kMostBetweenLooks);
      look_at_deadline();
      look_at_launcher();
      if (channel_) look_at_ranks();
    }
  } catch (const std::exception& failure) {
    end(fmt::format("rank {} on {} has no memory left to watch the others ({}); use a smaller --bs",
                    launched_rank_, own_host(), failure.what()),
        static_cast<int>(ExitCode::out_of_memory));
  }
}

void Watchdog::exchange_messages() {
  {
    const std::lock_guard lock(mutex_);
    if (new_channel_) channel_ = std::move(new_channel_);
  }
  const Channel::Events events{
      .received = [this](int from, const WatchMessage& message) { received(from, message); },
      .closed = [this](int from) { closed(from); }};
  if (channel_)
    channel_->poll(kBetweenLooks, wake_.get(), events);
  else
    wait_readable(wake_.get(), kBetweenLooks);
  std::uint64_t ignored = 0;
  [[maybe_unused]] const ssize_t woken = ::read(wake_.get(), &ignored, sizeof ignored);
  const std::lock_guard lock(mutex_);
  if (!channel_ || speaks_) return;
  channel_->send_to_all({.type = WatchMessage::Type::leaving});
  channel_.reset();
  watches_ = false;
  changed_.notify_all();
}

// Before warm-up, and at the end. From then on ranks are watched by their collectives.
void Watchdog::look_at_deadline() {
  const RunStatus status = board_.status();
  if (std::exchange(phase_since_ns_, status.phase_since_ns) != status.phase_since_ns)
    phase_began_ = watched_seconds_;
  const bool ends = status.phase == RunPhase::ending;
  if (!ends && status.phase >= RunPhase::warmup) return;
  const double limit = ends ? options_.limits.timeout_seconds
                            : options_.limits.startup_timeout_seconds + (channel_ ? kGraceForVerdict : 0);
  const double seconds = watched_seconds_ - phase_began_;
  if (seconds < limit + (launched_rank_ == 0 ? 0 : kGraceForLowerRanks)) return;
  if (channel_) leave(kPeerLost);
  end(late_text(launched_rank_, status.phase, seconds), kPeerLost);
}

void Watchdog::look_at_launcher() {
  if (!launcher_ || ::getppid() == *launcher_) return;
  const Verdict verdict{
      .kind = Verdict::Kind::launcher_gone, .rank = launched_rank_, .last = summary_of(board_)};
  if (!launcher_gone_at_) launcher_gone_at_ = watched_seconds_;
  if (launched_rank_ != 0 && watched_seconds_ - *launcher_gone_at_ < kGraceForRank0) return;
  if (channel_) condemn(verdict, true);
  end(sentence_of(verdict, {own_host(), ::getpid()}, options_.limits), kPeerLost);
}

void Watchdog::look_at_ranks() {
  begin_to_watch();
  send_heartbeat();
  const bool may_be_of_all = found_ && found_->kind == Verdict::Kind::signal;
  if (!found_ || may_be_of_all) pass_on_own_end();  // not after a loss, for which a launcher sends signals
  if (is_leaving_) return;
  if (told_) condemn(*told_, false);
  if (detector_ && rank_ == 0) detector_->heard(0, sent_, watched_seconds_);
  if (detector_ && !found_ && !left_.contains(0)) found_ = detector_->look(watched_seconds_);
  if (!found_ || (may_be_of_all && watched_seconds_ - found_at_ < kSignalOfAllRanks)) return;
  if (rank_ != 0) found_->last = last_sent_[0];
  condemn(*found_, found_->kind != Verdict::Kind::ended);
}

// A rank may have ended since all were connected.
void Watchdog::begin_to_watch() {
  {
    const std::lock_guard lock(mutex_);
    if (!watches_ || detector_) return;
  }
  WatchLimits limits = options_.limits;
  if (rank_ != 0) limits.timeout_seconds += kGraceForRank0;
  const int watched = rank_ == 0 ? static_cast<int>(identities_.size()) : 1;
  detector_.emplace(watched, limits, watched_seconds_);
  for (int rank = 0; rank < watched; ++rank) {
    if (left_.contains(rank)) detector_->has_left(rank);
    if (rank != rank_ && !channel_->is_connected(rank)) closed(rank);
  }
}

void Watchdog::send_heartbeat() {
  const double interval = std::min(kHeartbeatSeconds, kHeartbeatShare * options_.limits.timeout_seconds);
  if (watched_seconds_ - sent_at_ < interval && board_.status().phase == sent_.phase) return;
  sent_at_ = watched_seconds_;
  sent_ = summary_of(board_);
  channel_->send_to_all({.verdict = {.last = sent_}});
}

void Watchdog::received(int from, const WatchMessage& message) {
  switch (message.type) {
    case WatchMessage::Type::heartbeat: {
      const RankSummary& summary = message.verdict.last;
      last_sent_[from] = summary;
      // Other ranks only decide whether rank 0 is silent.
      if (detector_)
        detector_->heard(from, from == 0 ? RankSummary{.phase = summary.phase} : summary, watched_seconds_);
      break;
    }
    case WatchMessage::Type::verdict:
      if (!told_) told_ = message.verdict;
      break;
    case WatchMessage::Type::leaving:
      take_leave(from, message.exit_code);
      break;
  }
}

// Acted upon once everything that has arrived is read.
void Watchdog::closed(int from) {
  if (detector_ && !found_) found_ = detector_->closed(from);
}

void Watchdog::take_leave(int from, int exit_code) {
  if (detector_) detector_->has_left(from);
  if (exit_code == 0) left_.insert(from);
  if (exit_code == 0 || rank_ != 0 || found_) return;
  found_at_ = watched_seconds_;
  found_ = Verdict{.kind = exit_code > kExitOfSignal ? Verdict::Kind::signal : Verdict::Kind::ended,
                   .exit_code = exit_code,
                   .rank = from,
                   .last = last_sent_[from]};
}

// Once the announcement is known to rank 0, or from rank 0 to all, the announcing thread goes on.
void Watchdog::pass_on_own_end() {
  std::optional<int> exit_code;
  {
    const std::lock_guard lock(mutex_);
    exit_code = std::exchange(own_end_, std::nullopt);
  }
  if (exit_code) leave(*exit_code);
  if (!is_leaving_ || (rank_ != 0 && !told_ && channel_->is_connected(0))) return;
  if (told_ && told_->kind != Verdict::Kind::ended) condemn(*told_, false);
  const std::lock_guard lock(mutex_);
  settled_ = true;
  changed_.notify_all();
}

// This rank ends the job itself.
void Watchdog::leave(int exit_code) {
  is_leaving_ = true;
  WatchMessage message{.type = WatchMessage::Type::leaving, .exit_code = exit_code};
  if (rank_ == 0)
    message = {.type = WatchMessage::Type::verdict,
               .verdict = {.kind = Verdict::Kind::ended, .exit_code = exit_code, .rank = 0, .last = sent_}};
  channel_->send_to_all(message);
}

void Watchdog::condemn(const Verdict& verdict, bool prints) {
  const std::string sentence =
      sentence_of(verdict, identities_[static_cast<std::size_t>(verdict.rank)], options_.limits);
  // Rank 0 reads it, too, if it was stopped and goes on.
  channel_->send_to_all({.type = WatchMessage::Type::verdict, .verdict = verdict});
  prepare_end(sentence, verdict.exit_code, prints);
  // The rank that prints goes first, and mpirun takes its exit code.
  const int first = rank_ == 0 ? verdict.rank : 0;
  const auto begin = steady_clock::now();
  while (!prints && first != rank_ && channel_->is_connected(first) &&
         steady_clock::now() - begin < kPatienceWithFirst)
    channel_->poll(20ms, wake_.get(), {.received = [](int, const WatchMessage&) {}, .closed = [](int) {}});
  finish(verdict.exit_code);
}

void Watchdog::end(const std::string& sentence, int exit_code) {
  prepare_end(sentence, exit_code, true);
  finish(exit_code);
}

// From here on only this thread may end the process.
void Watchdog::prepare_end(const std::string& sentence, int exit_code, bool prints) {
  Lock lock(mutex_);
  condemned_ = true;
  changed_.notify_all();
  lock.unlock();
  if (prints) options_.print(sentence);
  const auto call = [this, sentence, exit_code] { call_before_exit(sentence, exit_code); };
  try {
    quiet_thread(call).detach();
  } catch (const std::system_error&) {  // as many threads as there may be
    call();
  }
  lock.lock();
  changed_.wait_for(lock, kPatienceWithCall, [&] { return called_; });
}

void Watchdog::call_before_exit(const std::string& sentence, int exit_code) {
  {
    const std::lock_guard lock(before_exit_mutex_);
    if (before_exit_) before_exit_(sentence, exit_code);
  }
  const std::lock_guard lock(mutex_);
  called_ = true;
  changed_.notify_all();
}

void Watchdog::finish(int exit_code) const {
  if (launcher_) end_launcher_later(*launcher_, kPatienceWithLauncher);
  std::_Exit(exit_code);
}

}  // namespace plumb
