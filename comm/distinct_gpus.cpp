#include "comm/distinct_gpus.h"

#include <algorithm>
#include <map>

namespace plumb {

GpuUse gpu_use(const std::vector<RankDevice>& devices) {
  GpuUse use;
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> ranks;  // by host and GPU
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    const auto& [host, gpu] = devices[rank];
    if (gpu.empty()) continue;
    std::vector<std::size_t>& sharing = ranks[{host, gpu}];
    sharing.push_back(rank);
    use.most_ranks = std::max(use.most_ranks, static_cast<int>(sharing.size()));
    if (sharing.size() > 1 && use.shared.empty())
      use.shared = fmt::format(
          "rank {} and rank {} on {} both use {}; start fewer ranks there, set CUDA_VISIBLE_DEVICES for "
          "each, or pass --share-gpu",
          sharing.front(), rank, host, gpu);
  }
  return use;
}

int require_distinct_gpus(const Job& job, const std::string& gpu, bool share_gpu) {
  const std::vector<std::string> hosts = job.all_gather(job.host());
  const std::vector<std::string> gpus = job.all_gather(gpu);
  std::vector<RankDevice> devices;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) devices.push_back({hosts[rank], gpus[rank]});
  const GpuUse use = gpu_use(devices);
  if (use.shared.empty() || share_gpu) return use.most_ranks;
  if (job.rank() == 0) throw Error(ExitCode::usage, use.shared);
  throw ErrorToldElsewhere(ExitCode::usage, use.shared);
}

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
