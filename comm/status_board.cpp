#include "comm/status_board.h"

#include <time.h>

#include <algorithm>
#include <bit>
#include <chrono>

namespace plumb {
namespace {

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The same clock at its last tick, up to 10 ms ago, in a quarter of the time.
std::int64_t steady_tick_ns() {
  timespec tick{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &tick);
  return std::int64_t{1'000'000'000} * tick.tv_sec + tick.tv_nsec;
}

}  // namespace

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

StatusBoard::StatusBoard() : phase_since_ns_(steady_ns()) {}

void StatusBoard::set_phase(RunPhase phase) {
  if (phase_.load(std::memory_order_relaxed) == phase) return;
  phase_since_ns_.store(steady_ns(), std::memory_order_relaxed);
  phase_.store(phase, std::memory_order_release);  // last: who reads it early takes the phase for a long one
}

void StatusBoard::set_iteration(std::int64_t iteration) {
  iteration_.store(iteration, std::memory_order_relaxed);
}

std::uint64_t StatusBoard::enter(RecordedKind kind, std::string_view name, std::uint64_t bytes) {
  const std::uint64_t sequence = entered_.load(std::memory_order_relaxed) + 1;
  std::array<char, EnteredCollective::kMostNameBytes + 1> text{};
  std::copy_n(name.begin(), std::min(name.size(), EnteredCollective::kMostNameBytes), text.begin());
  const auto words = std::bit_cast<std::array<std::uint64_t, Slot::kNameWords>>(text);
  Slot& slot = slot_of(sequence);
  slot.sequence.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot.kind.store(static_cast<std::uint64_t>(kind), std::memory_order_relaxed);
  slot.bytes.store(bytes, std::memory_order_relaxed);
  slot.entered_ns.store(steady_tick_ns(), std::memory_order_relaxed);
  slot.left_ns.store(0, std::memory_order_relaxed);
  for (std::size_t i = 0; i < words.size(); ++i) slot.name[i].store(words[i], std::memory_order_relaxed);
  slot.sequence.store(sequence, std::memory_order_release);
  entered_.store(sequence, std::memory_order_release);
  return sequence;
}

void StatusBoard::leave(std::uint64_t sequence) {
  Slot& slot = slot_of(sequence);
  if (slot.sequence.load(std::memory_order_relaxed) == sequence)
    slot.left_ns.store(steady_tick_ns(), std::memory_order_relaxed);
}

RunStatus StatusBoard::status() const {
  return {.phase = phase_.load(std::memory_order_acquire),
          .phase_since_ns = phase_since_ns_.load(std::memory_order_relaxed),
          .iteration = iteration_.load(std::memory_order_relaxed),
          .entered = entered_.load(std::memory_order_acquire)};
}

std::vector<EnteredCollective> StatusBoard::collectives() const {
  const std::uint64_t last = entered_.load(std::memory_order_acquire);
  std::vector<EnteredCollective> records;
  records.reserve(kKept);
  for (std::uint64_t sequence = last > kKept ? last - kKept + 1 : 1; sequence <= last; ++sequence) {
    const Slot& slot = slots_[sequence % kKept];
    if (slot.sequence.load(std::memory_order_acquire) != sequence) continue;
    EnteredCollective record{.sequence = sequence,
                             .kind = static_cast<RecordedKind>(slot.kind.load(std::memory_order_relaxed)),
                             .bytes = slot.bytes.load(std::memory_order_relaxed),
                             .entered_ns = slot.entered_ns.load(std::memory_order_relaxed),
                             .left_ns = slot.left_ns.load(std::memory_order_relaxed)};
    std::array<std::uint64_t, Slot::kNameWords> words{};
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = slot.name[i].load(std::memory_order_relaxed);
    record.name = std::bit_cast<decltype(record.name)>(words);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (slot.sequence.load(std::memory_order_relaxed) == sequence) records.push_back(record);
  }
  return records;
}

}  // namespace plumb
