// What must hold after a run before its numbers may be believed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/job.h"
#include "kernels/device.h"
#include "models/graph.h"

namespace plumb {

// FNV-1a (64 bit) over the bytes of every parameter, in public order and layout.
std::uint64_t parameter_checksum(const Graph& graph, const Device& device);

struct Checks {
  bool replicas_identical = true, parameters_moved = true, loss_finite = true;
  std::string failure;  // one sentence for the first that failed; empty if all hold
};

// `checksums`: of every rank, after the run. `initial`: before the run (the same on all ranks). `loss`: of
// every iteration, mean over ranks. `learning_rate` 0 leaves parameters where they were.
Checks check_run(const std::vector<std::uint64_t>& checksums, std::uint64_t initial,
                 const std::vector<double>& loss, double learning_rate);

}  // namespace plumb
