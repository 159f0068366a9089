// Where one rank is: its phase, iteration and last collectives. The rank's threads write, any thread reads at
// any time, also while the writer is stuck or the process ends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

namespace plumb {

// In the order of a run. `measuring`: anything but training, of which some ranks may have more to do.
enum class RunPhase : std::uint8_t {
  starting,
  preparing,
  tuning,
  warmup,
  window,
  measuring,
  checking,
  ending
};
std::string_view name_of(RunPhase phase);  // "start-up", "the window"

// A collective of training, a message of Job, or on a device that carries collectives itself an iteration.
struct EnteredCollective {
  static constexpr std::size_t kMostNameBytes = 39;

  // From 1 on. All ranks of a job enter the same collectives in the same order, so numbers can be compared.
  std::uint64_t sequence = 0;
  // "allreduce_sum bucket3", "message barrier"; ends in 0, longer ones are cut.
  std::array<char, kMostNameBytes + 1> name{};
  std::uint64_t bytes = 0;             // of the whole buffer; 0: not known
  double entered_at = 0, left_at = 0;  // by steady_seconds(); left_at 0: under way

  bool under_way() const { return left_at == 0; }
};

struct RunStatus {
  RunPhase phase = RunPhase::starting;
  double phase_since = 0;       // by steady_seconds()
  std::int64_t iteration = -1;  // the one under way, or the last; -1 before the first
  std::uint64_t entered = 0;    // sequence number of the last collective entered; 0: none
};

// Any thread may call any function; signal handlers may not. Only collectives() allocates, and no function
// waits for anything but the lock.
class StatusBoard {
 public:
  static constexpr std::size_t kKept = 64;

  StatusBoard();
  StatusBoard(const StatusBoard&) = delete;
  StatusBoard& operator=(const StatusBoard&) = delete;

  void set_phase(RunPhase phase);
  void set_iteration(std::int64_t iteration);

  // Returns the sequence number, for leave().
  std::uint64_t enter(std::string_view kind, std::string_view name, std::uint64_t bytes);
  // Does nothing for one that isn't among the last kKept any more.
  void leave(std::uint64_t sequence);

  RunStatus status() const;
  // The last kKept, oldest first.
  std::vector<EnteredCollective> collectives() const;

 private:
  mutable std::mutex mutex_;  // guards what follows
  RunStatus status_;
  std::array<EnteredCollective, kKept> collectives_{};
};

// While it lives, a message is under way on the board. A null board: nothing.
class CollectiveScope {
 public:
  CollectiveScope(StatusBoard* board, std::string_view name, std::uint64_t bytes = 0)
      : board_(board), sequence_(board ? board->enter("message", name, bytes) : 0) {}
  ~CollectiveScope() {
    if (board_) board_->leave(sequence_);
  }
  CollectiveScope(const CollectiveScope&) = delete;
  CollectiveScope& operator=(const CollectiveScope&) = delete;

 private:
  StatusBoard* board_;
  std::uint64_t sequence_;
};

}  // namespace plumb
