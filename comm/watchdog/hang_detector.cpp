#include "comm/watchdog/hang_detector.h"

#include <algorithm>
#include <cstring>

#include "base/paths.h"
#include "base/text.h"

namespace plumb {
namespace {

constexpr double kBytesPerSecond = 1e6;
constexpr double kQuietShare = 0.4;  // of the timeout

// "allreduce bucket3 (number 57, 4194304 bytes)"
std::string text_of(const NamedCollective& one) {
  std::string text(name_of(one.kind));
  if (one.name.front() != 0) append_part(text, printable(one.name.data()), " ");
  return text + (one.bytes == 0 ? fmt::format(" (number {})", one.sequence)
                                : fmt::format(" (number {}, {} bytes)", one.sequence, one.bytes));
}

// "in the window, iteration 17, with allreduce bucket3 (number 57, 4194304 bytes) under way"
std::string place_text(const RankSummary& last) {
  std::string text = fmt::format("in {}", name_of(last.phase));
  if (last.iteration >= 0) text += fmt::format(", iteration {}", last.iteration);
  if (last.oldest.sequence != 0)
    text += fmt::format(", with {} under way", text_of(last.oldest));
  else if (last.entered != 0)
    text += fmt::format(", after {} collectives", last.entered);
  return text;
}

}  // namespace

RankSummary summary_of(const StatusBoard& board) {
  const RunStatus status = board.status();
  RankSummary summary{.phase = status.phase, .iteration = status.iteration, .entered = status.entered};
  for (const EnteredCollective& one : board.collectives()) {
    if (!one.under_way() || one.sequence > summary.entered) continue;
    if (summary.oldest.sequence == 0) summary.oldest = {one.sequence, one.kind, one.name, one.bytes};
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
          "{} is gone, it was killed, crashed or was cut off {}; look at what it printed and at its host's "
          "kernel log (dmesg)",
          who, where);
    case Verdict::Kind::silent:
      return fmt::format(
          "{} has sent nothing for {:.0f} s{}: it is stopped, or its host or link is lost; it was {}; look "
          "after that host, or raise --timeout-s {:g}",
          who, verdict.seconds,
          verdict.others > 0
              ? fmt::format(", nor {} {} more", verdict.others > 1 ? "have" : "has", verdict.others)
              : "",
          where, limits.timeout_seconds);
    case Verdict::Kind::not_entered:
      return fmt::format(
          "{} has not entered {} for {:.0f} s, in which other ranks wait; it is {}; see what it does there "
          "(gdb -p {}), or raise --timeout-s {:g}",
          who, what, verdict.seconds, where, rank.pid, limits.timeout_seconds);
    case Verdict::Kind::not_ended:
      return fmt::format(
          "{} has not ended on {}{} for {:.0f} s although every rank has entered it; it is {}; see whether "
          "all hosts still reach each other, or raise --timeout-s {:g}",
          what, who, verdict.others > 0 ? fmt::format(" and {} more", verdict.others) : "", verdict.seconds,
          where, limits.timeout_seconds);
    case Verdict::Kind::signal: {
      const char* const name = ::sigabbrev_np(verdict.exit_code - kExitOfSignal);
      return fmt::format("{} was ended by SIG{}, {}; look for who sent that signal", who, name ? name : "?",
                         where);
    }
    case Verdict::Kind::ended:
      return fmt::format("{} ended the job with exit code {}, {}; see its rank_{}.json", who,
                         verdict.exit_code, where, verdict.rank);
    case Verdict::Kind::launcher_gone:
      break;
  }
  return fmt::format("the launcher that started {} is gone, which was {}; start the job again", who, where);
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
  if (summary.entered != one.summary.entered) one.awaited_since.reset();
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

std::optional<Verdict> HangDetector::look(double now) {
  note_who_is_awaited(now);
  if (const auto silent = silent_one(now)) return silent;
  // Others may wait for it: either it speaks again, or it will be called silent.
  if (quiet_ones(now) > 0) return std::nullopt;
  if (const auto late = late_one(now)) return late;
  return stuck_one(now);
}

void HangDetector::note_who_is_awaited(double now) {
  lead_ = 0;
  for (const Rank& rank : ranks_)
    if (rank.there) lead_ = std::max(lead_, rank.summary.entered);
  for (Rank& rank : ranks_) {
    if (rank.summary.entered == lead_) rank.awaited_since.reset();
    if (rank.summary.entered < lead_ && !rank.awaited_since) rank.awaited_since = now;
  }
}

double HangDetector::limit_of(const RankSummary& summary) const {
  const bool trains = summary.phase == RunPhase::warmup || summary.phase == RunPhase::window;
  return trains ? limits_.timeout_seconds
                : std::max(limits_.timeout_seconds, limits_.startup_timeout_seconds);
}

std::optional<Verdict> HangDetector::silent_one(double now) const {
  std::optional<Verdict> worst;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const double seconds = now - ranks_[i].heard;
    if (ranks_[i].there && seconds > limits_.timeout_seconds && (!worst || seconds > worst->seconds))
      worst = Verdict{.kind = Verdict::Kind::silent,
                      .rank = static_cast<std::int32_t>(i),
                      .others = quiet_ones(now) - 1,
                      .seconds = seconds,
                      .last = ranks_[i].summary};
  }
  return worst;
}

int HangDetector::quiet_ones(double now) const {
  return static_cast<int>(std::ranges::count_if(ranks_, [&](const Rank& rank) {
    return rank.there && now - rank.heard > kQuietShare * limits_.timeout_seconds;
  }));
}

// A rank that waits for bytes of an earlier collective can't enter the next one.
std::optional<Verdict> HangDetector::late_one(double now) const {
  std::optional<Verdict> worst;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Rank& rank = ranks_[i];
    if (!rank.there || !rank.awaited_since) continue;
    const double seconds = now - *rank.awaited_since;
    const double limit = limit_of(rank.summary) +
                         allowance_seconds(rank.summary.bytes_under_way, static_cast<int>(ranks_.size()));
    if (seconds > limit && (!worst || seconds > worst->seconds))
      worst = Verdict{.kind = Verdict::Kind::not_entered,
                      .rank = static_cast<std::int32_t>(i),
                      .seconds = seconds,
                      .missing = {.sequence = rank.summary.entered + 1},
                      .last = rank.summary};
  }
  if (!worst) return worst;
  for (const Rank& rank : ranks_)
    if (rank.there && rank.summary.oldest.sequence == worst->missing.sequence)
      worst->missing = rank.summary.oldest;
  return worst;
}

std::optional<Verdict> HangDetector::stuck_one(double now) const {
  std::optional<Verdict> stuck;
  double limit = 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const RankSummary& summary = ranks_[i].summary;
    if (!ranks_[i].there) continue;
    if (summary.entered < lead_) return std::nullopt;
    limit = std::max(limit, limit_of(summary));
    bytes = std::max(bytes, summary.bytes_under_way);
    if (summary.oldest.sequence == 0) continue;
    if (stuck && summary.oldest.sequence == stuck->missing.sequence) ++stuck->others;
    if (stuck && summary.oldest.sequence >= stuck->missing.sequence) continue;
    stuck = Verdict{.kind = Verdict::Kind::not_ended,
                    .rank = static_cast<std::int32_t>(i),
                    .missing = summary.oldest,
                    .last = summary};
  }
  if (!stuck || now - moved_ <= limit + allowance_seconds(bytes, static_cast<int>(ranks_.size())))
    return std::nullopt;
  stuck->seconds = now - moved_;
  return stuck;
}

}  // namespace plumb
