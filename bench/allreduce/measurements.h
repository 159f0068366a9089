// The measurements of bench_allreduce. It times one size of one collective across ranks and checks every
// element; the messages of a training step are such collectives, too.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "bench/allreduce/allreduce_options.h"
#include "bench/allreduce/exchange.h"
#include "results/record/fields.h"
#include "results/statistics/statistics.h"

namespace plumb {

// Seconds of iterations that all ranks run together.
struct RankTimes {
  ValueRange iterations;  // over iterations, each as long as its slowest rank
  ValueRange ranks;       // over ranks, of each the median iteration
  int slowest_rank = 0;   // with the longest median
};
// `rank_iterations`: one rank's iterations behind the other's, as Job::gather() returns them; not empty.
RankTimes times_over_ranks(std::span<const double> rank_iterations, int world_size);

// A figure of bench_allreduce, as "results" of plumbline.allreduce/2 has it.
struct MeasuredTransfer {
  std::string name;  // of a replayed message: "bucket0.allreduce"; else empty
  Collective::Kind kind = Collective::Kind::allreduce_sum;
  std::int64_t bytes = 0;  // of the whole message: all ranks' parts of an allgather or reduce-scatter
  DType dtype = DType::f32;
  bool in_place = true;
  int world_size = 1;
  RankTimes times;
  std::int64_t wrong_elements = 0;  // over all ranks
  std::string wrong;  // what the lowest rank with a wrong element found, the same on all ranks; or empty

  // Median over iterations of the slowest rank's time.
  double seconds() const { return times.iterations.median; }
  // bytes / seconds; 0 if the clock saw no time pass.
  double algbw_bytes_per_second() const;
  // algbw times bus_factor() (results/record/schema.h).
  double busbw_bytes_per_second() const;
  static void fields(auto& self, auto&& each) {
    each("name", self.name, Field{.about = "of a replayed message", .written = !self.name.empty()});
    each("collective", collective_name(self.kind)), each("bytes", self.bytes, Field{"of the whole message"});
    each("dtype", std::string(name_of(self.dtype))), each("in_place", self.in_place);
    each("seconds", self.seconds(), Field{"median over iterations of the slowest rank's time"});
    each("algbw_bytes_per_second", self.algbw_bytes_per_second());
    each("busbw_bytes_per_second", self.busbw_bytes_per_second());
    each("wrong_elements", self.wrong_elements, Field{"over all ranks"});
    each("iteration_seconds", self.times.iterations, Field{"over iterations, the slowest rank's"});
    each("rank_seconds", self.times.ranks, Field{"over ranks, their medians"});
    each("slowest_rank", self.times.slowest_rank);
  }
};

// "allreduce", "allgather", "reducescatter", "broadcast"; of maxima "allreduce_max".
std::string collective_name(Collective::Kind kind);

struct TransferMeasure {
  int warmup = 5, iterations = 20;
  MessageDamage damage = {};
};

// Times the transfer, then carries it out once more and checks every element. Collective; only rank 0 has
// times.
MeasuredTransfer measure(Exchange& exchange, const Transfer& transfer, const TransferMeasure& how);

// The collectives of the step that --replay names, as a run with these options would plan it. Throws
// Error(usage) if the device lacks the precision.
Program replayed_program(const AllreduceOptions& options, Device& device, int rank, int world_size);

}  // namespace plumb
