// Detects ranks that share a GPU.
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

// Error message for the lowest two ranks that share a GPU; nullopt if all GPUs are distinct. Names the ranks,
// the host, the UUID, the number of ranks and GPUs in use there, and the remedy. `devices`: in rank order.
std::optional<std::string> shared_gpu(const std::vector<RankDevice>& devices);

// The largest number of ranks on one GPU; 1 if all GPUs are distinct, and on CPUs.
int most_ranks_per_gpu(const std::vector<RankDevice>& devices);

// Collective. Returns most_ranks_per_gpu() of the job. If two ranks share a GPU and !share_gpu, throws
// Error(usage) on rank 0 and ErrorToldElsewhere on the others. `gpu`: Device::unique_id().
int require_distinct_gpus(const Job& job, const std::string& gpu, bool share_gpu);

}  // namespace plumb
