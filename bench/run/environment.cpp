#include "bench/run/environment.h"

#include <dnnl.h>
#include <jpeglib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/build.h"
#include "base/error.h"
#include "base/machine/machine.h"
#include "base/paths.h"
#include "base/text.h"
#include "comm/communicator.h"
#include "comm/job.h"
#include "kernels/device.h"
#include "results/record/environment.h"

namespace plumb {
namespace {

constexpr const char* kRecordedVariables = R"(
CUDA_DEVICE_MAX_CONNECTIONS CUDA_DEVICE_ORDER CUDA_LAUNCH_BLOCKING CUDA_MODULE_LOADING CUDA_VISIBLE_DEVICES
DNNL_CPU_ISA_HINTS DNNL_DEFAULT_FPMATH_MODE DNNL_MAX_CPU_ISA DNNL_PRIMITIVE_CACHE_CAPACITY DNNL_VERBOSE
FI_PROVIDER FI_TCP_IFACE
GOMP_CPU_AFFINITY GOMP_SPINCOUNT
KMP_AFFINITY KMP_BLOCKTIME KMP_HW_SUBSET
MALLOC_ARENA_MAX
NCCL_ALGO NCCL_BUFFSIZE NCCL_CROSS_NIC NCCL_DEBUG NCCL_IB_DISABLE NCCL_IB_GID_INDEX NCCL_IB_HCA NCCL_IB_TC
NCCL_MAX_NCHANNELS NCCL_MIN_NCHANNELS NCCL_NET_GDR_LEVEL NCCL_NSOCKS_PERTHREAD NCCL_NVLS_ENABLE
NCCL_P2P_DISABLE NCCL_P2P_LEVEL NCCL_PROTO NCCL_SHM_DISABLE NCCL_SOCKET_IFNAME NCCL_SOCKET_NTHREADS
OMPI_MCA_btl OMPI_MCA_btl_tcp_if_exclude OMPI_MCA_btl_tcp_if_include
OMPI_MCA_btl_vader_single_copy_mechanism OMPI_MCA_coll_hcoll_enable OMPI_MCA_coll_tuned_allreduce_algorithm
OMPI_MCA_coll_tuned_use_dynamic_rules OMPI_MCA_hwloc_base_binding_policy OMPI_MCA_mpi_yield_when_idle
OMPI_MCA_oob_tcp_if_include OMPI_MCA_pml OMPI_MCA_rmaps_base_mapping_policy
OMP_DYNAMIC OMP_MAX_ACTIVE_LEVELS OMP_NUM_THREADS OMP_PLACES OMP_PROC_BIND OMP_SCHEDULE OMP_STACKSIZE
OMP_THREAD_LIMIT OMP_WAIT_POLICY
SLURM_CPUS_PER_TASK SLURM_JOB_ID SLURM_JOB_NUM_NODES SLURM_NNODES SLURM_NTASKS SLURM_NTASKS_PER_NODE
UCX_NET_DEVICES)";

std::string dotted(long major, long minor, long patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace

nlohmann::ordered_json engine_build_json(bool load) {
  const dnnl_version_t* onednn = dnnl_version();
  constexpr long kJpeg = LIBJPEG_TURBO_VERSION_NUMBER;  // 2001005 for 2.1.5
  nlohmann::ordered_json libraries;
  libraries["oneDNN"] = dotted(onednn->major, onednn->minor, onednn->patch);
  libraries["MPI"] = mpi_library();
  libraries["libjpeg-turbo"] = dotted(kJpeg / 1'000'000, kJpeg / 1000 % 1000, kJpeg % 1000);
  for (const std::string& library : cuda::library_versions(load))
    if (const std::size_t blank = library.rfind(' '); blank != std::string::npos)
      libraries[library.substr(0, blank)] = library.substr(blank + 1);
  if (const std::string nccl = nccl_version(); !nccl.empty()) libraries["NCCL"] = nccl;
  return build_json(std::move(libraries));
}

std::string build_lines() {
  nlohmann::ordered_json entries = engine_build_json().flatten();
  const auto commit = entries.at("/commit").get<std::string>();
  std::string lines = fmt::format("commit={}\n", commit);
  entries.erase("/commit");
  for (const auto& [name, value] : entries.items())
    lines += fmt::format("{}={}\n", name.substr(name.rfind('/') + 1), value.get<std::string>());
  return lines;
}

std::map<std::string, std::string> recorded_variables(const char* const* environment) {
  std::istringstream words(kRecordedVariables);
  const std::set<std::string> names{std::istream_iterator<std::string>(words), {}};
  std::map<std::string, std::string> kept;
  for (; *environment != nullptr; ++environment) {
    const std::string entry(*environment);
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos && names.contains(entry.substr(0, equals)))
      kept.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return kept;
}

nlohmann::ordered_json environment_json(const std::vector<std::string>& machines) {
  const auto machine_of = [](const std::string& text) {
    return record_of<MachineRecord>(nlohmann::ordered_json::parse(text), "a host");
  };
  EnvironmentRecord environment{.machine = machine_of(machines.front()),
                                .build = record_of<BuildRecord>(engine_build_json(), "--version --json"),
                                .variables = recorded_variables(environ)};
  std::set<std::string> hosts{environment.machine.host};
  for (const std::string& text : machines) {
    const MachineRecord machine = machine_of(text);
    if (!hosts.insert(machine.host).second) continue;
    if (!environment.other_hosts) environment.other_hosts.emplace();
    environment.other_hosts->push_back(machine);
  }
  return fields::written(environment);
}

void require_open_files() {
  constexpr rlim_t kNeeded = 64;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < kNeeded)
    throw Error(ExitCode::unavailable,
                "ulimit -n {}: expected at least {} open files for MPI and the libraries; raise that limit",
                limit.rlim_cur, kNeeded);
}

ThreadShare threads_for_this_rank(const std::vector<std::string>& placements, int rank, int cpus,
                                  int host_cpus, int host_cpus_per_core) {
  const std::string& mine = placements.at(static_cast<std::size_t>(rank));
  const std::string host = mine.substr(0, mine.find(' ') + 1);
  int sharing = 0, before_me = 0, on_host = 0;
  for (std::size_t other = 0; other < placements.size(); ++other) {
    on_host += placements[other].starts_with(host);
    if (placements[other] != mine) continue;
    ++sharing;
    before_me += other < static_cast<std::size_t>(rank);
  }
  ThreadShare share;
  share.threads = std::max(1, cpus / sharing + (before_me < cpus % sharing ? 1 : 0));
  const int fair = host_cpus / on_host;
  if (cpus > 0 && cpus <= host_cpus_per_core && fair > cpus)
    share.remark = fmt::format(
        "rank {} is bound to one core of a host with {} CPUs; pass --map-by slot:PE={} or --bind-to none to "
        "mpirun to use its share",
        rank, host_cpus, std::max(1, fair / host_cpus_per_core));
  return share;
}

void ensure_short_openmp_waits(char** argv) {
  // Set by the user, or by this function before.
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  if (setenv("OMP_WAIT_POLICY", "passive", 1) != 0 || setenv("GOMP_SPINCOUNT", "3000", 1) != 0) return;
  // By its own path, after which ps and top name it. Returns only if it failed: then the run is slower, and
  // right.
  std::error_code error;
  execv(std::filesystem::read_symlink("/proc/self/exe", error).c_str(), argv);
}

}  // namespace plumb
