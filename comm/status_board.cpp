#include "comm/status_board.h"

#include <fmt/format.h>

#include "base/steady_clock.h"

namespace plumb {

std::string_view name_of(RunPhase phase) {
  constexpr std::array kNames{"start-up",   "preparation",     "tuning",     "warm-up",
                              "the window", "the measurement", "the checks", "the end"};
  return kNames[static_cast<std::size_t>(phase)];
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

std::uint64_t StatusBoard::enter(std::string_view kind, std::string_view name, std::uint64_t bytes) {
  EnteredCollective record{.bytes = bytes, .entered_at = steady_seconds()};
  fmt::format_to_n(record.name.begin(), EnteredCollective::kMostNameBytes, "{} {}", kind, name);
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
