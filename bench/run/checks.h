// What must hold after a run before its numbers may be believed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/job.h"
#include "kernels/device.h"
#include "models/graph.h"

namespace plumb {

// fnv1a over the bytes of every parameter that all ranks have alike, in public order and layout: not of rows
// that the ranks share out.
std::uint64_t parameter_checksum(const Graph& graph, const Device& device);

// The first parameter or running statistic that holds NaN or infinity; empty if none does. The loss alone
// doesn't show it: NaN that meets a ReLU becomes 0 there.
std::string first_not_finite(const Graph& graph, const Device& device);

struct Checks {
  bool replicas_identical = true, parameters_moved = true, loss_finite = true, tensors_finite = true;
  std::string failure;  // one sentence for the first that failed; empty if all hold
};

struct RunEvidence {
  std::vector<std::uint64_t> checksums;  // of every rank, after the run
  std::uint64_t initial_checksum = 0;    // before the run, the same on all ranks
  std::vector<std::string> not_finite;   // of every rank: first_not_finite after the run
  std::vector<double> loss;              // of every iteration, mean over ranks
  double learning_rate = 0;              // 0 leaves parameters where they were
};
Checks check_run(const RunEvidence& evidence);

}  // namespace plumb
