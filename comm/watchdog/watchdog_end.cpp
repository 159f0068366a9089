// How ranks end once one is lost: who tells, and what happens to the launchers.
#include <unistd.h>

#include <chrono>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "comm/watchdog/now_seconds.h"
#include "comm/watchdog/quiet_thread.h"
#include "comm/watchdog/watchdog.h"

namespace plumb {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kPatienceWithCall{5};  // of before_exit
constexpr std::chrono::seconds kPatienceWithTeller{6}, kPatienceWithSuccessor{2}, kPatienceWithLauncher{5};

}  // namespace

void Watchdog::succeed_hub(const Verdict& verdict) {
  note_verdict();
  std::vector<std::string> hosts;
  for (const RankIdentity& one : identities_) hosts.push_back(one.host);
  succession_.emplace(hosts, rank_, now_seconds());
  while (!told_ && !succession_->is_over(now_seconds())) {
    for (const int rank : succession_->to_dial(now_seconds()))
      endpoint_->dial(rank, addresses_[static_cast<std::size_t>(rank)]);
    if (const auto rank = succession_->to_ask(now_seconds())) ask(*rank, verdict);
    endpoint_->poll(20ms);
  }
  succession_.reset();
  if (told_) condemn(*told_, false);
  condemn(verdict, true);
}

// Whether it tells, or knows who does.
void Watchdog::ask(int rank, const Verdict& verdict) {
  const auto end = steady_clock::now() + kPatienceWithSuccessor;
  endpoint_->send(rank, FrameType::report, verdict);
  while (!told_ && endpoint_->has_joined(rank) && steady_clock::now() < end) endpoint_->poll(20ms);
  if (endpoint_->has_joined(rank)) succession_->gives_no_answer(rank);
}

// The main thread may end the process no more.
void Watchdog::note_verdict() {
  const std::lock_guard lock(mutex_);
  condemned_ = true;
  changed_.notify_all();
}

void Watchdog::condemn(const Verdict& verdict, bool tells) {
  note_verdict();
  const RankIdentity& lost = identities_[static_cast<std::size_t>(verdict.rank)];
  const std::string sentence = sentence_of(verdict, lost, options_.limits);
  if (tells) options_.tell(sentence);
  endpoint_->send_to_all(FrameType::verdict, verdict);
  try {
    quiet_thread([this, verdict, sentence] { call_before_exit(verdict, sentence); }).detach();
  } catch (const std::system_error&) {  // as many threads as there may be
    call_before_exit(verdict, sentence);
  }
  const auto called = [this] {
    const std::lock_guard lock(mutex_);
    return called_;
  };
  // Who tells goes first, and mpirun takes its exit code; a rank in rank 0's place waits for others to ask.
  const auto begin = steady_clock::now();
  const auto waits = [&](auto longest, bool on) { return on && steady_clock::now() - begin < longest; };
  const bool asked = tells && !is_hub() && rank_ + 1 < size_;
  while (waits(kPatienceWithCall, !called()) || waits(kPatienceWithSuccessor, asked) ||
         waits(kPatienceWithTeller, !tells && endpoint_->has_joined(0))) {
    endpoint_->poll(20ms);
    if (lost_ && asked) endpoint_->send_to_all(FrameType::verdict, verdict);
    lost_.reset();
  }
  endpoint_->flush(1s);
  // mpirun kills a rank that is stopped, srun may leave it.
  const bool may_be_left = verdict.kind == Verdict::Kind::silent && verdict.rank != rank_;
  if (may_be_left && (!launcher_ || !launcher_->ends_ranks())) {
    if (lost.host == identities_[static_cast<std::size_t>(rank_)].host)
      kill_same_program(static_cast<pid_t>(lost.pid));
    else if (tells && launcher_)
      end_slurm_step();
  }
  end_process(static_cast<int>(ExitCode::peer_lost));
}

void Watchdog::call_before_exit(const Verdict& verdict, const std::string& sentence) {
  {
    const std::lock_guard lock(before_exit_mutex_);
    if (before_exit_) before_exit_(verdict, sentence);
  }
  const std::lock_guard lock(mutex_);
  called_ = true;
}

void Watchdog::end_process(int exit_code) {
  if (launcher_) end_launcher_later(*launcher_, kPatienceWithLauncher);
  ::_exit(exit_code);
}

}  // namespace plumb
