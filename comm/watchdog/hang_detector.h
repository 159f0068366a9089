// Decides from heartbeats which rank is late, lost or stuck. Pure: the caller passes the times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/status_board.h"

namespace plumb {

struct WatchLimits {
  double timeout_seconds = 30;           // --timeout-s
  double startup_timeout_seconds = 600;  // --startup-timeout-s, of all phases but warm-up and window
};

// The part of a heartbeat that says where its rank is.
struct RankSummary {
  RunPhase phase = RunPhase::starting;
  std::int64_t iteration = -1;
  std::uint64_t entered = 0;          // sequence number of the last collective entered
  EnteredCollective oldest;           // of those under way; sequence 0: none
  std::uint64_t bytes_under_way = 0;  // of all
};
RankSummary summary_of(const StatusBoard& board);

// A process that a signal ends has this exit code plus the signal.
inline constexpr int kExitOfSignal = 128;

// What one rank says of a rank, of itself or of another one. `last` is where that rank was.
struct Verdict {
  enum class Kind : std::uint8_t {
    alive,          // a heartbeat: no other member counts than `last`
    left,           // it ends in good order
    ended,          // it ends the job itself, with a sentence of its own
    signal,         // a signal ended it, and no other rank
    closed,         // its connection ended without a goodbye
    silent,         // no heartbeat for too long
    not_entered,    // others wait for it in a collective
    not_ended,      // a collective that all have entered doesn't end on this rank
    overdue,        // a phase outside of training takes too long
    launcher_gone,  // its mpirun or orted ended
  };
  Kind kind = Kind::alive;
  std::int32_t exit_code = 75;  // with which all ranks end
  std::int32_t rank = 0;
  double seconds = 0;
  EnteredCollective missing;  // or the one that doesn't end
  RankSummary last;
};

struct RankIdentity {
  std::string host;
  std::int64_t pid = 0;
};

// "rank 1 on n2 (pid 4711) …", with what to look at.
std::string sentence_of(const Verdict& verdict, const RankIdentity& rank, const WatchLimits& limits);

// Seconds that collectives of so many bytes get on top: each rank sends 2 (n - 1) / n of them (Patarasuk and
// Yuan 2009, doi:10.1016/j.jpdc.2008.09.002), at 1 MB/s.
double allowance_seconds(std::uint64_t bytes, int ranks);

// Watches the ranks of a job. Times are seconds on a clock that stands still while this process is stopped.
class HangDetector {
 public:
  HangDetector(int ranks, const WatchLimits& limits, double now);

  void heard(int rank, const RankSummary& summary, double now);
  // It ends, and all know: no alarm any more.
  void has_left(int rank);
  // Its connection has ended. No verdict for one that was ending.
  std::optional<Verdict> closed(int rank) const;
  // The rank that has been silent longest, if that is too long.
  std::optional<Verdict> silent(double now) const;
  // The same, or else the rank that holds up the others. To be called several times a second, after
  // everything that has arrived was heard().
  std::optional<Verdict> look(double now) const;

 private:
  struct Rank {
    bool there = true;
    double heard = 0;  // last heartbeat
    RankSummary summary;
  };

  std::optional<Verdict> late_or_stuck(double now) const;
  double limit_of(const RankSummary& summary) const;

  WatchLimits limits_;
  std::vector<Rank> ranks_;
  double moved_;  // when a rank last entered or ended a collective
};

}  // namespace plumb
