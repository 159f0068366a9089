// Verdicts on measured throughput: impossible, slower than predicted, or odd.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results/record/note.h"
#include "results/simulation/prediction.h"

namespace plumb {

inline constexpr double kRejectAbove = 0.02;   // faster than the bound: the clock or links.json is wrong
inline constexpr double kLeastBusShare = 0.8;  // of the bus bandwidth that bench_allreduce reached
inline constexpr double kLeastFall = 0.01;     // of step time: a smaller one is noise

// Where a measured step takes longer than the predicted one.
struct LostTime {
  enum class Part { communication, slow_ranks, data, computing, unknown };
  Part part = Part::unknown;
  double seconds = 0;  // per step; below 0: won back
  std::string name;    // "in exposed communication", "waiting for rank 3 on node2"
};
// The largest part first; a log without a record has one part, unknown.
std::vector<LostTime> lost_time(const ScalingBasis& basis, const PredictedCase& predicted,
                                const MeasuredCase& measured);

// Bytes over the time of the fastest rank, which waited least for the others, of all gradients' buckets.
struct BusShare {
  double reached = 0, expected = 0;  // bytes/s
};
// Nothing if the run's collectives weren't timed.
std::optional<BusShare> bus_share(const ScalingPrediction& prediction, const MeasuredCase& measured);

// Seconds of a step: its images over the measured throughput.
double measured_step(const ScalingBasis& basis, const MeasuredCase& measured);

// REJECT: measured faster than the bound by over 2 %. EXPLAIN: slower than predicted by over kLeastLoss, with
// what holds it back, the largest part first: exposed communication, slow ranks, data, gaps and computing; or
// the run's own buckets reached under 0.8 of the bus bandwidth that was predicted for them. FLAG: steps get
// shorter by over 1 % where devices are added. Subjects are cases, in their order; none for what-if
// predictions.
std::vector<Note> scaling_verdicts(const ScalingBasis& basis, const ScalingPrediction& prediction);

}  // namespace plumb
