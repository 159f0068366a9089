#include "comm/watchdog/watchdog.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <utility>

#include "base/error.h"
#include "base/paths.h"
#include "base/text.h"
#include "comm/watchdog/now_seconds.h"
#include "comm/watchdog/quiet_thread.h"

namespace plumb {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenLooks{200};
constexpr std::chrono::milliseconds kBetweenDials{100};
constexpr double kHeartbeatSeconds = 1, kHeartbeatShare = 0.25;  // of the timeout
constexpr double kHubFirstSeconds = 2;  // rank 0's verdict comes before the others' of rank 0
constexpr std::chrono::seconds kPatienceToConnect{20};
constexpr std::chrono::seconds kPatienceForVerdict{2};  // of a rank whose MPI call failed
constexpr std::chrono::seconds kPatienceForStandDown{1};
// After a stand-down.
constexpr double kPatienceWithEndSeconds = 10, kPatienceWithSignalSeconds = 2;
constexpr int kSignal = 128;  // exit codes above it
constexpr char kBetweenFields = '\n';

}  // namespace

Watchdog::Watchdog(const Job& job, const StatusBoard& board, WatchdogOptions options)
    : board_(board), options_(std::move(options)), rank_(job.rank()), size_(job.size()) {
  Listener listener;
  try {
    listener = listen_at(options_.address);
  } catch (const Error& error) {
    why_off_ = error.what();
  }
  why_off_ = gather_identities(job, listener.at.port);
  Token token = rank_ == 0 ? random_token() : Token();
  job.broadcast(token);
  if (!why_off_.empty()) return;
  endpoint_ = std::make_unique<Endpoint>(
      rank_, size_, token, std::move(listener),
      Endpoint::Events{.joined = [this](int rank) { join(rank); },
                       .received = [this](int rank, const Frame& frame) { take(rank, frame); },
                       .closed = [this](int rank) { lose(rank); }},
      StrangerLimits{.most = std::max<std::size_t>(64, 2 * static_cast<std::size_t>(size_))});
  if (!is_hub()) endpoint_->dial(0, addresses_.front());
  speaks_ = true;
  thread_ = quiet_thread([this](const std::stop_token& stop) { run(stop); });
}

void Watchdog::connect(const Job& job) {
  if (!why_off_.empty()) return;
  why_off_ = why_not_connected(job);
  if (!why_off_.empty()) stop();
  const std::lock_guard lock(mutex_);
  watches_ = why_off_.empty();
}

Watchdog::~Watchdog() {
  stop();
}

void Watchdog::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    speaks_ = false;
  }
  thread_.request_stop();
  endpoint_->wake();
  thread_.join();
}

// Returns why ranks can't be watched, the same on all ranks.
std::string Watchdog::gather_identities(const Job& job, int port) {
  const std::string own =
      fmt::format("{}\n{}\n{}\n{}\n{}", own_host(), ::getpid(), options_.address, port, why_off_);
  std::string why;
  for (const std::string& text : job.all_gather(own)) {
    const std::vector<std::string> fields = split(text, kBetweenFields);
    identities_.push_back({fields.at(0), std::strtoll(fields.at(1).c_str(), nullptr, 10)});
    addresses_.push_back({fields.at(2), std::atoi(fields.at(3).c_str())});
    if (why.empty() && !fields.at(4).empty()) why = fmt::format("on {}: {}", fields.at(0), fields.at(4));
  }
  return why;
}

// Waits for rank 0 and the others. Returns why they aren't connected, the same on all ranks.
std::string Watchdog::why_not_connected(const Job& job) {
  bool joined = false;
  {
    std::unique_lock lock(mutex_);
    joined =
        changed_.wait_for(lock, kPatienceToConnect, [&] { return joined_ == (is_hub() ? size_ - 1 : 1); });
  }
  const SocketAddress& hub = addresses_.front();
  const std::string why =
      joined || is_hub()
          ? ""
          : fmt::format("rank {} on {} can't reach rank 0 at {} port {}", rank_,
                        printable(identities_[static_cast<std::size_t>(rank_)].host), hub.address, hub.port);
  for (const std::string& one : job.all_gather(why))
    if (!one.empty()) return one;
  return "";
}

void Watchdog::set_before_exit(std::function<void(const Verdict&, const std::string&)> before_exit) {
  const std::lock_guard lock(before_exit_mutex_);
  before_exit_ = std::move(before_exit);
}

void Watchdog::stand_down(int exit_code) {
  std::unique_lock lock(mutex_);
  if (!speaks_) return;
  if (condemned_) wait_for_the_end(lock);
  if (std::exchange(fails_, true)) return;
  if (exit_code == static_cast<int>(ExitCode::peer_lost)) {
    // What MPI says of a rank that is gone follows from what another one says.
    if (changed_.wait_for(lock, kPatienceForVerdict, [&] { return is_settled(); })) wait_for_the_end(lock);
  }
  announce(exit_code, lock);
}

void Watchdog::stand_down_at_once(int exit_code) {
  std::unique_lock lock(mutex_);
  if (!speaks_) return;
  if (is_settled()) wait_for_the_end(lock);
  fails_ = true;
  announce(exit_code, lock);
}

void Watchdog::announce(int exit_code, std::unique_lock<std::mutex>& lock) {
  failing_ = exit_code;
  endpoint_->wake();
  changed_.wait_for(lock, kPatienceForStandDown, [&] { return is_settled(); });
  if (condemned_) wait_for_the_end(lock);
}

// The thread ends the process.
void Watchdog::wait_for_the_end(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [] { return false; });
}

void Watchdog::run(const std::stop_token& stop) {
  try {
    for (;;) {
      endpoint_->poll(kBetweenLooks);
      if (stop.stop_requested()) break;
      act(now_seconds());
    }
    endpoint_->send_to_all(FrameType::goodbye, 0);
    endpoint_->flush(1s);
  } catch (const std::exception& failure) {  // others would take this rank for lost
    options_.tell(fmt::format("rank {} on {} has no memory left to watch the others ({}); use a smaller --bs",
                              rank_, own_host(), failure.what()));
    end_process(static_cast<int>(ExitCode::out_of_memory));
  }
}

void Watchdog::act(double now) {
  {
    const std::lock_guard lock(mutex_);
    if (watches_ && !judge_) begin_to_judge(now);
  }
  if (std::exchange(dials_again_, false)) {
    std::this_thread::sleep_for(kBetweenDials);
    endpoint_->dial(0, addresses_.front());
  }
  send_heartbeat(now);
  if (!lost_) pass_on_failure();  // a launcher sends signals because of the loss
  if (stood_down_at_) {
    const double patience = exit_code_ > kSignal ? kPatienceWithSignalSeconds : kPatienceWithEndSeconds;
    if (now - *stood_down_at_ > patience) end_process(exit_code_);
    return;
  }
  if (!judge_) return;
  if (told_) condemn(*told_, false);
  look_after_launcher();
  judge(now);
}

// A rank may have ended since all were connected.
void Watchdog::begin_to_judge(double now) {
  WatchLimits limits = options_.limits;
  if (!is_hub()) limits.timeout_seconds += kHubFirstSeconds;
  judge_.emplace(is_hub() ? size_ : 1, limits, now);
  hub_heard_ = now;
  for (const int rank : left_)
    if (is_watched(rank)) judge_->has_left(rank);
  for (int rank = is_hub() ? 1 : 0; rank < (is_hub() ? size_ : 1); ++rank)
    if (!endpoint_->has_joined(rank)) lose(rank);
}

void Watchdog::send_heartbeat(double now) {
  const double interval = std::min(kHeartbeatSeconds, kHeartbeatShare * options_.limits.timeout_seconds);
  if (now - sent_ < interval && board_.status().phase == said_.phase) return;
  sent_ = now;
  said_ = summary_of(board_);
  endpoint_->send_to_all(FrameType::heartbeat, said_);
}

void Watchdog::judge(double now) {
  if (is_hub()) judge_->heard(0, said_, now);
  if (!is_hub() && left_.contains(0)) return;
  if (!lost_) lost_ = judge_->look(now);
  if (!lost_) return;
  if (is_hub()) condemn(*lost_, true);
  lost_->last = hub_said_;
  succeed_hub(*lost_);
}

void Watchdog::join(int rank) {
  if (succession_) succession_->joined(rank);
  const std::lock_guard lock(mutex_);
  ++joined_;
  changed_.notify_all();
}

// Decided upon in act(), once everything that has arrived is read.
void Watchdog::lose(int rank) {
  if (succession_) return succession_->closed(rank);
  if (!judge_) {
    if (left_.contains(rank)) return;
    const std::lock_guard lock(mutex_);
    joined_ = std::max(0, joined_ - 1);
    dials_again_ = !is_hub();
    return;
  }
  if (is_watched(rank) && !lost_) lost_ = judge_->closed(rank);
}

void Watchdog::take(int from, const Frame& frame) {
  const double now = now_seconds();
  switch (frame.type) {
    case FrameType::heartbeat: {
      const auto summary = value_in<RankSummary>(frame);
      if (from == 0) {
        hub_heard_ = now;
        hub_said_ = summary;
      }
      if (!judge_) break;
      if (is_hub()) judge_->heard(from, summary, now);
      // Only whether it is silent is for this rank to judge.
      if (from == 0) judge_->heard(0, {.phase = summary.phase}, now);
      break;
    }
    case FrameType::report:
      take_report(from, value_in<Verdict>(frame));
      break;
    case FrameType::verdict:
      // A higher rank passes on what it was told by this one, unless this is rank 0 and was stopped.
      if (!told_ && (from < rank_ || is_hub())) told_ = value_in<Verdict>(frame);
      break;
    case FrameType::failing:
      if (!is_hub()) break;
      note_who_fails(from, value_in<int>(frame));
      note_stand_down(value_in<int>(frame));
      break;
    case FrameType::stand_down:
      note_stand_down(value_in<int>(frame));
      break;
    case FrameType::goodbye:
      left_.insert(from);
      if (judge_ && is_watched(from)) judge_->has_left(from);
      break;
    default:
      break;
  }
}

// To rank 0: a rank's own end. To others: rank 0 is lost to that rank.
void Watchdog::take_report(int from, const Verdict& verdict) {
  const bool hub_is_there = endpoint_->has_joined(0) && now_seconds() - hub_heard_ < kHubFirstSeconds;
  if (!is_hub() && hub_is_there)
    endpoint_->send(from, FrameType::verdict, verdict);
  else if (!lost_)
    lost_ = verdict;
}

void Watchdog::pass_on_failure() {
  std::optional<int> exit_code;
  {
    const std::lock_guard lock(mutex_);
    exit_code = std::exchange(failing_, std::nullopt);
  }
  if (!exit_code || stood_down_at_) return;
  if (is_hub() || !endpoint_->send(0, FrameType::failing, *exit_code)) note_stand_down(*exit_code);
}

void Watchdog::note_who_fails(int rank, int exit_code) {
  if (stood_down_at_ || exit_code > kSignal) return;
  const std::lock_guard lock(mutex_);
  ended_by_ = {rank, identities_[static_cast<std::size_t>(rank)].host, exit_code};
}

std::optional<FailedRank> Watchdog::ended_by() const {
  const std::lock_guard lock(mutex_);
  return ended_by_;
}

void Watchdog::note_stand_down(int exit_code) {
  if (stood_down_at_) return;
  stood_down_at_ = now_seconds();
  exit_code_ = exit_code;
  if (is_hub()) {
    endpoint_->send_to_all(FrameType::stand_down, exit_code);
    endpoint_->flush(300ms);
  }
  const std::lock_guard lock(mutex_);
  stood_down_ = true;
  changed_.notify_all();
}

void Watchdog::look_after_launcher() {
  if (!launcher_ || !launcher_->is_gone()) return;
  const Verdict verdict{.kind = Verdict::Kind::launcher_gone, .rank = rank_, .last = said_};
  if (!is_hub() && endpoint_->send(0, FrameType::report, verdict)) {
    const auto end = steady_clock::now() + kPatienceForVerdict;
    while (!told_ && endpoint_->has_joined(0) && steady_clock::now() < end) endpoint_->poll(50ms);
  }
  condemn(verdict, !told_);
}

}  // namespace plumb
