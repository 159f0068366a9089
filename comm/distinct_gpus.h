// Whether ranks share a GPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/job.h"

namespace plumb {

// A rank's device: `gpu` is its UUID, empty for a CPU.
struct RankDevice {
  std::string host;
  std::string gpu;
};

// The sentence about the lowest two ranks that share a GPU, of `devices` in rank order; nothing if all GPUs
// are distinct. Names the ranks, the host, the UUID, how many ranks and GPUs are in use there, and the
// remedy.
std::optional<std::string> shared_gpu(const std::vector<RankDevice>& devices);

// Throws Error(usage), on every rank (ErrorToldElsewhere but on rank 0), if two ranks share a GPU and that
// isn't allowed. Returns whether two do. A collective. `gpu`: Device::unique_id().
bool require_distinct_gpus(const Job& job, const std::string& gpu, bool share_gpu);

}  // namespace plumb
