#include "comm/watchdog/watchdog.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <future>
#include <memory>
#include <random>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/machine/host_addresses.h"
#include "base/paths.h"
#include "base/steady_clock.h"
#include "base/text.h"

namespace plumb {
namespace {

constexpr double kBetweenLooksSeconds = 0.2, kStoppedSeconds = 1;  // longer between two looks: stopped
constexpr double kHeartbeatSeconds = 1, kHeartbeatShare = 0.25;    // of the timeout
constexpr std::chrono::seconds kPatienceToConnect{20};
// Extra grace, so that the rank that can say most prints first, and its launcher ends the others.
constexpr double kGraceForRank0 = 2, kGraceForVerdict = 10, kGraceForLowerRanks = 8;
constexpr double kGraceForMessages = 2;      // for messages on their way
constexpr double kPatienceForMessages = 30;  // for the first message
constexpr double kSignalOfAllRanks = 1;      // within which it reaches rank 0, too
constexpr std::chrono::seconds kPatienceWithCall{5}, kPatienceWithLauncher{5}, kPatienceWithOthers{30};
constexpr int kPeerLost = static_cast<int>(ExitCode::peer_lost);

}  // namespace

Watchdog::Watchdog(const StatusBoard& board, WatchdogOptions options)
    : board_(board),
      options_(std::move(options)),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      rank_(launched_as().rank) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
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
  Listener listener;
  std::string why;
  try {
    if (job.rank() == 0) listener = listen_at(address);
  } catch (const Error& error) {
    why = fmt::format("on {}: {}", own_host(), error.what());
  }
  std::vector<RankIdentity> identities;
  SocketAddress rank_0_at;
  const std::string own = fmt::format("{}\n{}\n{}\n{}", own_host(), ::getpid(), address, listener.at.port);
  for (const std::string& text : job.all_gather(own)) {
    const std::vector<std::string> fields = split(text, '\n');
    if (identities.empty()) rank_0_at = {fields.at(2), std::atoi(fields.at(3).c_str())};
    identities.push_back({fields.at(0), std::atoll(fields.at(1).c_str())});
  }
  std::random_device random;
  Token token = Token{random()} << 32 | random();
  job.broadcast(token);
  if (rank_0_at.port == 0) return why;
  Channel channel = job.rank() == 0 ? Channel(listener, job.size(), token, kPatienceToConnect)
                                    : Channel(rank_0_at, job.rank(), token, kPatienceToConnect);
  for (int rank = 1; job.rank() == 0 && rank < job.size(); ++rank)
    if (!channel.is_connected(rank))
      return fmt::format("rank {} on {} cannot reach rank 0 at {} port {}", rank,
                         printable(identities[static_cast<std::size_t>(rank)].host), rank_0_at.address,
                         rank_0_at.port);
  const Lock lock(mutex_);
  rank_ = job.rank();
  identities_ = std::move(identities);
  watches_ranks_ = rank_ == 0 || channel.is_connected(0);
  if (rank_ == 0) detector_.emplace(job.size(), options_.limits, watched_seconds_);
  channel_ = std::move(channel);
  wake();  // the others watch rank 0 from its first heartbeat on
  return "";
}

void Watchdog::disconnect() {
  const Lock lock(mutex_);
  if (std::exchange(watches_ranks_, false)) channel_.send_to_all({.kind = Verdict::Kind::left});
}

void Watchdog::set_before_exit(std::function<void(const std::string&, int)> before_exit) {
  const Lock lock(mutex_);
  before_exit_ = std::move(before_exit);
}

void Watchdog::announce_end(int exit_code) {
  Lock lock(mutex_);
  if (own_end_) return;
  own_end_ = exit_code;
  // Open MPI's mpirun sometimes locks up while it ends the other ranks.
  if (launcher_) end_launcher_later(*launcher_, kPatienceWithOthers);
  if (!watches_ranks_) return;
  // What MPI says of a rank that is gone follows from what the watching thread says.
  const double grace = exit_code == kPeerLost ? kGraceForMessages : 0;
  leaves_at_ = watched_seconds_ + grace;
  wake();
  changed_.wait_for(lock, std::chrono::duration<double>(grace + kGraceForMessages), [&] { return settled_; });
}

void Watchdog::run(const std::stop_token& stop) {
  Lock lock(mutex_);
  try {
    for (double looked = steady_seconds(); !stop.stop_requested();) {
      exchange_messages(lock);
      const double now = steady_seconds();
      const double passed = now - std::exchange(looked, now);
      watched_seconds_ += passed < kStoppedSeconds ? passed : kBetweenLooksSeconds;
      look_at_phase();
      look_at_launcher();
      if (watches_ranks_) look_at_ranks();
      if (found_ && watched_seconds_ >= found_->due) end_by(*found_);
      // Not after a loss, for which a launcher sends signals.
      if (watches_ranks_ && own_end_ && !leaves_ && watched_seconds_ >= leaves_at_) leave();
    }
  } catch (const std::exception& failure) {
    options_.print(
        fmt::format("rank {} on {} has no memory left to watch the others ({}); use a smaller --bs", rank_,
                    own_host(), failure.what()));
    std::_Exit(static_cast<int>(ExitCode::out_of_memory));
  }
}

// Without the lock while it waits.
void Watchdog::exchange_messages(Lock& lock) {
  std::vector<pollfd> polled = channel_.polled();
  polled.push_back({.fd = wake_.get(), .events = POLLIN, .revents = 0});
  lock.unlock();
  ::poll(polled.data(), polled.size(), static_cast<int>(1000 * kBetweenLooksSeconds));
  std::uint64_t ignored = 0;
  [[maybe_unused]] const ssize_t woken = ::read(wake_.get(), &ignored, sizeof ignored);
  lock.lock();
  channel_.receive(polled, {.received = [this](int from, const Verdict& message) { received(from, message); },
                            .closed = [this](int from) { closed(from); }});
}

// Before warm-up, and at the end. In between ranks are watched by their collectives.
void Watchdog::look_at_phase() {
  const RunStatus status = board_.status();
  if (std::exchange(phase_since_, status.phase_since) != status.phase_since) phase_began_ = watched_seconds_;
  const double seconds = watched_seconds_ - phase_began_;
  const bool starts = rank_ == 0 && status.phase == RunPhase::starting && status.entered == 0;
  if (starts && seconds > kPatienceForMessages && options_.messages_are_late)
    std::exchange(options_.messages_are_late, {})(seconds);
  const bool ends = status.phase == RunPhase::ending;
  if (!ends && status.phase >= RunPhase::warmup) return;
  const double limit = ends ? options_.limits.timeout_seconds
                            : options_.limits.startup_timeout_seconds + (detector_ ? kGraceForVerdict : 0);
  Verdict verdict = of_this_rank(Verdict::Kind::overdue, kPeerLost);
  verdict.seconds = seconds;
  if (verdict.seconds >= limit + (rank_ == 0 ? 0 : kGraceForLowerRanks)) find(verdict, 0);
}

void Watchdog::look_at_launcher() {
  if (!launcher_ || ::getppid() == *launcher_) return;
  find(of_this_rank(Verdict::Kind::launcher_gone, kPeerLost), rank_ == 0 ? 0 : kGraceForRank0);
}

void Watchdog::look_at_ranks() {
  const double interval = std::min(kHeartbeatSeconds, kHeartbeatShare * options_.limits.timeout_seconds);
  if (watched_seconds_ - sent_at_ >= interval || board_.status().phase != sent_.phase) {
    sent_at_ = watched_seconds_;
    sent_ = summary_of(board_);
    channel_.send_to_all({.last = sent_});
  }
  if (!detector_ || leaves_) return;
  if (rank_ == 0) detector_->heard(0, sent_, watched_seconds_);
  if (const auto verdict =
          rank_ == 0 ? detector_->look(watched_seconds_) : detector_->silent(watched_seconds_))
    find(*verdict, 0);
}

void Watchdog::received(int from, const Verdict& message) {
  if (!watches_ranks_) return;
  // Rank 0 has connected all ranks.
  if (!detector_) {
    WatchLimits limits = options_.limits;
    limits.timeout_seconds += kGraceForRank0;
    detector_.emplace(1, limits, watched_seconds_);
  }
  if (message.kind == Verdict::Kind::alive) return detector_->heard(from, message.last, watched_seconds_);
  detector_->has_left(from);
  if (message.kind == Verdict::Kind::left) return;
  const bool may_be_of_all = rank_ == 0 && message.kind == Verdict::Kind::signal;
  if (leaves_ && (may_be_of_all || message.kind == Verdict::Kind::ended)) return settle();
  find(message, may_be_of_all ? kSignalOfAllRanks : 0, may_be_of_all);
}

void Watchdog::closed(int from) {
  if (leaves_) settle();
  if (!detector_ || !watches_ranks_ || leaves_) return;
  if (const auto verdict = detector_->closed(from)) find(*verdict, 0);
}

// This rank ends the job itself. The announcing thread goes on once rank 0 knows, or from rank 0 all.
void Watchdog::leave() {
  leaves_ = true;
  found_.reset();
  const bool by_signal = rank_ != 0 && *own_end_ > kExitOfSignal;
  channel_.send_to_all(of_this_rank(by_signal ? Verdict::Kind::signal : Verdict::Kind::ended, *own_end_));
  if (rank_ == 0 || !channel_.is_connected(0)) settle();
}

void Watchdog::settle() {
  settled_ = true;
  changed_.notify_all();
}

Verdict Watchdog::of_this_rank(Verdict::Kind kind, int exit_code) const {
  return {.kind = kind, .exit_code = exit_code, .rank = rank_, .last = summary_of(board_)};
}

// The one that is due first counts: what has arrived is all read before any is acted upon.
void Watchdog::find(const Verdict& verdict, double grace_seconds, bool prints) {
  const double due = watched_seconds_ + grace_seconds;
  if (!found_ || due < found_->due) found_ = {verdict, due, prints};
}

// Keeps the lock: no other thread may end the process any more.
void Watchdog::end_by(const Found& found) {
  const Verdict& verdict = found.verdict;
  const RankIdentity who = verdict.rank == rank_ ? RankIdentity{own_host(), ::getpid()}
                                                 : identities_[static_cast<std::size_t>(verdict.rank)];
  const std::string sentence = sentence_of(verdict, who, options_.limits);
  channel_.send_to_all(verdict);  // rank 0 reads it, too, if it was stopped and goes on
  if (found.prints) options_.print(sentence);
  call_before_exit(sentence, verdict.exit_code);
  // The rank that prints has time to write its result; its launcher then ends this one.
  if (!found.prints) std::this_thread::sleep_for(kPatienceWithCall);
  if (launcher_) end_launcher_later(*launcher_, kPatienceWithLauncher);
  std::_Exit(verdict.exit_code);
}

void Watchdog::call_before_exit(const std::string& sentence, int exit_code) const {
  if (!before_exit_) return;
  const auto call =
      std::make_shared<std::packaged_task<void()>>([=, this] { before_exit_(sentence, exit_code); });
  try {
    std::thread([call] { (*call)(); }).detach();
  } catch (const std::system_error&) {  // no further thread may be started
    (*call)();
  }
  call->get_future().wait_for(kPatienceWithCall);
}

}  // namespace plumb
