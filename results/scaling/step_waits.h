// How long a step waits, and for what.
#pragma once

#include <optional>
#include <string>

#include "results/record/schema.h"

namespace plumb {

// Waits of a typical rank, seconds per step.
struct StepWaits {
  double communication = 0, slow_ranks = 0, data = 0;
  bool ranks_known = true;      // false: communication includes the wait for slow ranks
  std::string slow_rank_names;  // "rank 13 on node2"; empty: none stands apart
};

// Nothing if the record doesn't know how long rank 0 waited.
std::optional<StepWaits> step_waits(const RunRecord& record, double step_seconds);

}  // namespace plumb
