// NCCL's environment variables for a job whose ranks share a GPU.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace plumb {

// Names and values for one rank. Pure.
//
// NCCL refuses two ranks on one GPU. Before 2.30 it compares host hash and bus id (src/init.cc, "Duplicate
// GPU detected"). The hash is of NCCL_HOSTID, else of host name and boot id (src/misc/utils.cc, getHostHash),
// so each rank gets a host id of its own and messages go through NCCL's sockets. From 2.30 on
// NCCL_MULTI_RANK_GPU_ENABLE=1 allows it (src/init.cc; in 2.30.3 src/graph/topo.cc, ncclCheckMultiRank). The
// other variables turn off what needs other hardware or memory shared by GPUs, and keep kernels small enough
// that all ranks' fit on the GPU.
//
// `hosts`: of the job. On one host messages stay on its loopback interface. `nccl_version`: as ncclGetVersion
// counts it, 22809 for 2.28.9.
std::vector<std::pair<std::string, std::string>> nccl_variables_on_shared_gpu(int rank, int hosts,
                                                                              int nccl_version);

}  // namespace plumb
