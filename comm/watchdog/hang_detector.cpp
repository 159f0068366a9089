#include "comm/watchdog/hang_detector.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/paths.h"
#include "base/text.h"

namespace plumb {
namespace {

constexpr double kBytesPerSecond = 1e6;
constexpr double kQuietShare = 0.4;  // of the timeout

// "allreduce_sum bucket3 (number 57)"
std::string text_of(const EnteredCollective& one) {
  return fmt::format("{} (number {})", printable(one.name.data()), one.sequence);
}

// "in the window, iteration 17, with allreduce_sum bucket3 (number 57) under way"
std::string place_text(const RankSummary& last) {
  std::string text = fmt::format("in {}", name_of(last.phase));
  if (last.iteration >= 0) text += fmt::format(", iteration {}", last.iteration);
  if (last.oldest.sequence != 0) text += fmt::format(", with {} under way", text_of(last.oldest));
  return text;
}

}  // namespace

RankSummary summary_of(const StatusBoard& board) {
  const RunStatus status = board.status();
  RankSummary summary{.phase = status.phase, .iteration = status.iteration, .entered = status.entered};
  for (const EnteredCollective& one : board.collectives()) {
    if (!one.under_way() || one.sequence > summary.entered) continue;
    if (summary.oldest.sequence == 0) summary.oldest = one;
    summary.bytes_under_way += one.bytes;
  }
  return summary;
}

std::string sentence_of(const Verdict& verdict, const RankIdentity& rank, const WatchLimits& limits) {
  const std::string who = fmt::format("rank {} on {} (pid {})", verdict.rank, printable(rank.host), rank.pid);
  const std::string where = place_text(verdict.last);
  const std::string what = text_of(verdict.missing);
  switch (verdict.kind) {
    case Verdict::Kind::closed:
      return fmt::format(
          "{} is gone: it was killed, crashed or was disconnected {}; see its output and its host's kernel "
          "log (dmesg)",
          who, where);
    case Verdict::Kind::silent:
      return fmt::format(
          "{} has sent nothing for {:.0f} s: it is stopped, or its host or link is lost; it was {}; check "
          "that host, or raise --timeout-s {:g}",
          who, verdict.seconds, where, limits.timeout_seconds);
    case Verdict::Kind::not_entered:
      return fmt::format(
          "{} has not entered {} for {:.0f} s, in which other ranks wait; it is {}; see what it does there "
          "(gdb -p {}), or raise --timeout-s {:g}",
          who, what, verdict.seconds, where, rank.pid, limits.timeout_seconds);
    case Verdict::Kind::not_ended:
      return fmt::format(
          "{} has not ended on {} for {:.0f} s although every rank has entered it; it is {}; check that all "
          "hosts reach each other, or raise --timeout-s {:g}",
          what, who, verdict.seconds, where, limits.timeout_seconds);
    case Verdict::Kind::signal: {
      const char* const name = ::sigabbrev_np(verdict.exit_code - kExitOfSignal);
      return fmt::format("{} was ended by SIG{}, {}; find out who sent that signal", who, name ? name : "?",
                         where);
    }
    case Verdict::Kind::ended:
      return fmt::format("{} ended the job with exit code {}, {}; see its rank_{}.json", who,
                         verdict.exit_code, where, verdict.rank);
    case Verdict::Kind::overdue:
      return fmt::format(
          "{} has been in {} for {:.0f} s; see what it waits for (gdb -p {}) and whether every rank "
          "runs this program, or raise {}",
          who, name_of(verdict.last.phase), verdict.seconds, rank.pid,
          verdict.last.phase == RunPhase::ending ? "--timeout-s" : "--startup-timeout-s");
    default:
      return fmt::format("the launcher that started {} is gone, which was {}; start the job again", who,
                         where);
  }
}

double allowance_seconds(std::uint64_t bytes, int ranks) {
  return static_cast<double>(bytes) * 2 * (ranks - 1) / ranks / kBytesPerSecond;
}

HangDetector::HangDetector(int ranks, const WatchLimits& limits, double now)
    : limits_(limits), ranks_(static_cast<std::size_t>(ranks)), moved_(now) {
  for (Rank& rank : ranks_) rank.heard = now;
}

void HangDetector::heard(int rank, const RankSummary& summary, double now) {
  Rank& one = ranks_[static_cast<std::size_t>(rank)];
  one.heard = now;
  if (summary.entered != one.summary.entered || summary.oldest.sequence != one.summary.oldest.sequence)
    moved_ = now;
  one.summary = summary;
}

void HangDetector::has_left(int rank) {
  ranks_[static_cast<std::size_t>(rank)].there = false;
}

std::optional<Verdict> HangDetector::closed(int rank) const {
  const Rank& one = ranks_[static_cast<std::size_t>(rank)];
  if (!one.there || one.summary.phase == RunPhase::ending) return std::nullopt;
  return Verdict{.kind = Verdict::Kind::closed, .rank = rank, .last = one.summary};
}

std::optional<Verdict> HangDetector::look(double now) const {
  if (const auto lost = silent(now)) return lost;
  // Others may wait for it: either it speaks again, or it will be called silent.
  const bool is_anyone_quiet = std::ranges::any_of(ranks_, [&](const Rank& rank) {
    return rank.there && now - rank.heard > kQuietShare * limits_.timeout_seconds;
  });
  return is_anyone_quiet ? std::nullopt : late_or_stuck(now);
}

double HangDetector::limit_of(const RankSummary& summary) const {
  const bool trains = summary.phase == RunPhase::warmup || summary.phase == RunPhase::window;
  return trains ? limits_.timeout_seconds
                : std::max(limits_.timeout_seconds, limits_.startup_timeout_seconds);
}

std::optional<Verdict> HangDetector::silent(double now) const {
  std::optional<Verdict> worst;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const double seconds = now - ranks_[i].heard;
    if (ranks_[i].there && seconds > limits_.timeout_seconds && (!worst || seconds > worst->seconds))
      worst = Verdict{.kind = Verdict::Kind::silent,
                      .rank = static_cast<std::int32_t>(i),
                      .seconds = seconds,
                      .last = ranks_[i].summary};
  }
  return worst;
}

// That is the rank that has entered the fewest collectives, and of those the one in the oldest. One that
// waits for bytes of an earlier collective can't enter the next one.
std::optional<Verdict> HangDetector::late_or_stuck(double now) const {
  const auto progress = [](const RankSummary& summary) {
    return std::pair(summary.entered, summary.oldest.sequence - 1);  // 0 - 1: most, as it waits in none
  };
  const Rank* last = nullptr;
  std::uint64_t lead = 0;  // the last collective that any rank has entered
  for (const Rank& rank : ranks_) {
    if (!rank.there) continue;
    if (!last || progress(rank.summary) < progress(last->summary)) last = &rank;
    lead = std::max(lead, rank.summary.entered);
  }
  if (!last) return std::nullopt;
  const RankSummary& summary = last->summary;
  const bool entered = summary.entered == lead;
  if (entered && summary.oldest.sequence == 0) return std::nullopt;
  const double limit =
      limit_of(summary) + allowance_seconds(summary.bytes_under_way, static_cast<int>(ranks_.size()));
  if (now - moved_ <= limit) return std::nullopt;
  Verdict verdict{.kind = entered ? Verdict::Kind::not_ended : Verdict::Kind::not_entered,
                  .rank = static_cast<std::int32_t>(last - ranks_.data()),
                  .seconds = now - moved_,
                  .missing = {.sequence = entered ? summary.oldest.sequence : summary.entered + 1},
                  .last = summary};
  for (const Rank& rank : ranks_)
    if (rank.there && rank.summary.oldest.sequence == verdict.missing.sequence)
      verdict.missing = rank.summary.oldest;
  return verdict;
}

}  // namespace plumb
