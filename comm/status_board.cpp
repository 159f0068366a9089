#include "comm/status_board.h"

#include <algorithm>

#include "base/steady_clock.h"

namespace plumb {

std::string_view name_of(RunPhase phase) {
  constexpr std::array kNames{"start-up",   "preparation",     "tuning",     "warm-up",
                              "the window", "the measurement", "the checks", "the end"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::string_view name_of(RecordedKind kind) {
  constexpr std::array kNames{
      "allreduce", "allreduce of maxima", "allgather", "reduce-scatter", "broadcast", "message", "iteration"};
  return kNames[static_cast<std::size_t>(kind)];
}

StatusBoard::StatusBoard() : status_{.phase_since = steady_seconds()} {}

void StatusBoard::set_phase(RunPhase phase) {
  const std::scoped_lock lock(mutex_);
  if (status_.phase == phase) return;
  status_.phase = phase;
  status_.phase_since = steady_seconds();
}

void StatusBoard::set_iteration(std::int64_t iteration) {
  const std::scoped_lock lock(mutex_);
  status_.iteration = iteration;
}

std::uint64_t StatusBoard::enter(RecordedKind kind, std::string_view name, std::uint64_t bytes) {
  EnteredCollective record{.kind = kind, .bytes = bytes, .entered_at = steady_seconds()};
  std::copy_n(name.begin(), std::min(name.size(), EnteredCollective::kMostNameBytes), record.name.begin());
  const std::scoped_lock lock(mutex_);
  record.sequence = ++status_.entered;
  collectives_[record.sequence % kKept] = record;
  return record.sequence;
}

void StatusBoard::leave(std::uint64_t sequence) {
  const double now = steady_seconds();
  const std::scoped_lock lock(mutex_);
  EnteredCollective& record = collectives_[sequence % kKept];
  if (record.sequence == sequence) record.left_at = now;
}

RunStatus StatusBoard::status() const {
  const std::scoped_lock lock(mutex_);
  return status_;
}

std::vector<EnteredCollective> StatusBoard::collectives() const {
  const std::scoped_lock lock(mutex_);
  std::vector<EnteredCollective> records;
  const std::uint64_t last = status_.entered;
  for (std::uint64_t sequence = last > kKept ? last - kKept + 1 : 1; sequence <= last; ++sequence)
    records.push_back(collectives_[sequence % kKept]);
  return records;
}

}  // namespace plumb
