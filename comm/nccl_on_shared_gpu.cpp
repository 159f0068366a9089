#include "comm/nccl_on_shared_gpu.h"

namespace plumb {

std::vector<std::pair<std::string, std::string>> nccl_variables_on_shared_gpu(int rank, int hosts,
                                                                              int nccl_version) {
  constexpr int kFirstWithSwitch = 23000;
  std::vector<std::pair<std::string, std::string>> variables{
      {"NCCL_NET", "Socket"},     {"NCCL_IB_DISABLE", "1"},   {"NCCL_MNNVL_ENABLE", "0"},
      {"NCCL_NVLS_ENABLE", "0"},  {"NCCL_CUMEM_ENABLE", "0"}, {"NCCL_RAS_ENABLE", "0"},
      {"NCCL_MAX_NCHANNELS", "2"}};
  if (hosts == 1) variables.emplace_back("NCCL_SOCKET_IFNAME", "lo");
  if (nccl_version < kFirstWithSwitch)
    variables.emplace_back("NCCL_HOSTID", "plumbline-rank-" + std::to_string(rank));
  else
    variables.emplace_back("NCCL_MULTI_RANK_GPU_ENABLE", "1");
  return variables;
}

}  // namespace plumb
