#include "comm/distinct_gpus.h"

#include <algorithm>
#include <map>
#include <set>

namespace plumb {
namespace {

using HostAndGpu = std::pair<std::string, std::string>;

}  // namespace

std::optional<std::string> shared_gpu(const std::vector<RankDevice>& devices) {
  std::map<HostAndGpu, std::size_t> first_ranks;
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    const auto& [host, gpu] = devices[rank];
    if (gpu.empty()) continue;
    const auto [first, is_new] = first_ranks.try_emplace({host, gpu}, rank);
    if (is_new) continue;
    std::set<std::string> gpus;
    for (const RankDevice& device : devices)
      if (device.host == host && !device.gpu.empty()) gpus.insert(device.gpu);
    return fmt::format(
        "rank {} and rank {} on {} both use {}; start at most {} ranks there, set CUDA_VISIBLE_DEVICES for "
        "each, or pass --share-gpu",
        first->second, rank, host, gpu, gpus.size());
  }
  return std::nullopt;
}

int most_ranks_per_gpu(const std::vector<RankDevice>& devices) {
  int most = 1;
  std::map<HostAndGpu, int> ranks;
  for (const RankDevice& device : devices)
    if (!device.gpu.empty()) most = std::max(most, ++ranks[{device.host, device.gpu}]);
  return most;
}

int require_distinct_gpus(const Job& job, const std::string& gpu, bool share_gpu) {
  const std::vector<std::string> hosts = job.all_gather(job.host());
  const std::vector<std::string> gpus = job.all_gather(gpu);
  std::vector<RankDevice> devices;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) devices.push_back({hosts[rank], gpus[rank]});
  const std::optional<std::string> shared = shared_gpu(devices);
  if (!shared || share_gpu) return most_ranks_per_gpu(devices);
  if (job.rank() == 0) throw Error(ExitCode::usage, *shared);
  throw ErrorToldElsewhere(ExitCode::usage, *shared);
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
