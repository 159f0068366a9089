// What must hold after a run before its numbers may be believed.
#pragma once

#include <cstdint>
#include <string>

#include "bench/run/session.h"
#include "comm/job.h"
#include "results/record/schema.h"

namespace plumb {

struct ParameterState {
  // fnv1a over every parameter that all ranks have alike, in public order and layout: not of rows that the
  // ranks share out.
  std::uint64_t checksum = 0;
  std::string not_finite;  // the first parameter that holds NaN or infinity
};
ParameterState read_parameter_state(const Graph& graph, const Device& device);

// Notes in the record whether replicas are identical, parameters have moved, losses and tensors are finite;
// every rank calls it. Throws Error(verification_failed), on all ranks, that says the first that doesn't
// hold. `initial_checksum`: of the parameters before the run, the same on all ranks.
void check_run(const Job& job, const Session& session, std::uint64_t initial_checksum, RunRecord& record);

}  // namespace plumb
