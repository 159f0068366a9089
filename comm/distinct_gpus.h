// Detects ranks that share a GPU, and lets NCCL run on them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "comm/job.h"

namespace plumb {

// A rank's device: `gpu` is its UUID, empty for a CPU.
struct RankDevice {
  std::string host;
  std::string gpu;
};

struct GpuUse {
  int most_ranks = 1;  // on one GPU; also 1 on CPUs
  std::string shared;  // the sentence about the lowest two ranks that share a GPU; empty if all are distinct
};

// `devices`: in rank order.
GpuUse gpu_use(const std::vector<RankDevice>& devices);

// Collective. Returns the largest number of ranks on one GPU of the job. If two ranks share a GPU and
// !share_gpu, throws Error(usage) on rank 0 and ErrorToldElsewhere on the others. `gpu`: Device::unique_id().
int require_distinct_gpus(const Job& job, const std::string& gpu, bool share_gpu);

// NCCL's environment variables for one rank of a job whose ranks share a GPU: names and values. Pure.
//
// Before 2.30 NCCL refuses two ranks of one bus id and host hash (src/init.cc, "Duplicate GPU detected"). The
// hash is of NCCL_HOSTID (src/misc/utils.cc, getHostHash), so each rank gets one of its own, and messages go
// through NCCL's sockets. From 2.30 on NCCL_MULTI_RANK_GPU_ENABLE=1 allows it (in 2.30.3 src/graph/topo.cc,
// ncclCheckMultiRank). The other variables turn off what needs other hardware or memory shared by GPUs, and
// keep kernels small enough that all ranks' fit on the GPU.
//
// `hosts`: of the job. On one host messages stay on its loopback interface. `nccl_version`: as ncclGetVersion
// counts it, 22809 for 2.28.9.
std::vector<std::pair<std::string, std::string>> nccl_variables_on_shared_gpu(int rank, int hosts,
                                                                              int nccl_version);

}  // namespace plumb
