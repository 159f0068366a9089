#include "bench/run/environment.h"

#include <ifaddrs.h>
#include <malloc.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>

#include "base/error.h"
#include "base/paths.h"
#include "base/text.h"
#include "bench/output/version.h"

namespace plumb {
namespace {

// Kept sorted.
constexpr std::array kRecordedVariables = {
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_VISIBLE_DEVICES",
    "DNNL_CPU_ISA_HINTS",
    "DNNL_DEFAULT_FPMATH_MODE",
    "DNNL_MAX_CPU_ISA",
    "DNNL_PRIMITIVE_CACHE_CAPACITY",
    "DNNL_VERBOSE",
    "FI_PROVIDER",
    "FI_TCP_IFACE",
    "GOMP_CPU_AFFINITY",
    "GOMP_SPINCOUNT",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "KMP_HW_SUBSET",
    "MALLOC_ARENA_MAX",
    "NCCL_ALGO",
    "NCCL_BUFFSIZE",
    "NCCL_CROSS_NIC",
    "NCCL_DEBUG",
    "NCCL_IB_DISABLE",
    "NCCL_IB_GID_INDEX",
    "NCCL_IB_HCA",
    "NCCL_IB_TC",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_NET_GDR_LEVEL",
    "NCCL_NSOCKS_PERTHREAD",
    "NCCL_NVLS_ENABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_PROTO",
    "NCCL_SHM_DISABLE",
    "NCCL_SOCKET_IFNAME",
    "NCCL_SOCKET_NTHREADS",
    "OMPI_MCA_btl",
    "OMPI_MCA_btl_tcp_if_exclude",
    "OMPI_MCA_btl_tcp_if_include",
    "OMPI_MCA_btl_vader_single_copy_mechanism",
    "OMPI_MCA_coll_hcoll_enable",
    "OMPI_MCA_coll_tuned_allreduce_algorithm",
    "OMPI_MCA_coll_tuned_use_dynamic_rules",
    "OMPI_MCA_hwloc_base_binding_policy",
    "OMPI_MCA_mpi_yield_when_idle",
    "OMPI_MCA_oob_tcp_if_include",
    "OMPI_MCA_pml",
    "OMPI_MCA_rmaps_base_mapping_policy",
    "OMP_DYNAMIC",
    "OMP_MAX_ACTIVE_LEVELS",
    "OMP_NUM_THREADS",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "OMP_SCHEDULE",
    "OMP_STACKSIZE",
    "OMP_THREAD_LIMIT",
    "OMP_WAIT_POLICY",
    "SLURM_CPUS_PER_TASK",
    "SLURM_JOB_ID",
    "SLURM_JOB_NUM_NODES",
    "SLURM_NNODES",
    "SLURM_NTASKS",
    "SLURM_NTASKS_PER_NODE",
    "UCX_NET_DEVICES",
};

int cpus_of_placement(const std::string& placement) {
  int count = 0;
  const char* at = placement.c_str() + placement.find(' ') + 1;
  while (*at != '\0') {
    char* end = nullptr;
    const long first = std::strtol(at, &end, 10);
    if (end == at) break;
    const long last = *end == '-' ? std::strtol(end + 1, &end, 10) : first;
    count += static_cast<int>(last - first + 1);
    at = *end == ',' ? end + 1 : end;
  }
  return count;
}

std::set<std::string> network_interfaces() {
  ifaddrs* addresses = nullptr;
  std::set<std::string> names;
  if (getifaddrs(&addresses) != 0) return names;
  for (const ifaddrs* one = addresses; one != nullptr; one = one->ifa_next) {
    const bool up = (one->ifa_flags & IFF_UP) != 0, loopback = (one->ifa_flags & IFF_LOOPBACK) != 0;
    if (!up || loopback || one->ifa_addr == nullptr) continue;
    if (one->ifa_addr->sa_family == AF_INET || one->ifa_addr->sa_family == AF_INET6)
      names.insert(one->ifa_name);
  }
  freeifaddrs(addresses);
  return names;
}

using Machines = std::map<std::string, nlohmann::ordered_json>;  // by host

std::string property_text(const nlohmann::ordered_json& machine, const char* property) {
  const auto value = machine.find(property);
  if (value == machine.end()) return "none";
  return value->is_string() ? printable(value->get<std::string>()) : value->dump();
}

std::string common_value(const Machines& machines, const std::string& first, const char* property) {
  std::vector<std::string> values{property_text(machines.at(first), property)};
  for (const auto& [host, machine] : machines)
    if (host != first) values.push_back(property_text(machine, property));
  return usual_value(values);
}

}  // namespace

std::map<std::string, std::string> recorded_variables(const char* const* environment) {
  std::map<std::string, std::string> kept;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const std::size_t equals = entry.find('=');
    if (equals != std::string_view::npos && std::ranges::count(kRecordedVariables, entry.substr(0, equals)))
      kept.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return kept;
}

std::string driver_version(const std::string& text) {
  std::smatch found;
  return std::regex_search(text, found, std::regex(R"(\s(\d+\.\d+(\.\d+)?)\s)")) ? found[1].str() : "";
}

nlohmann::ordered_json machine_json() {
  utsname name{};
  uname(&name);
  const std::string memory = cpu::proc_value("/proc/meminfo", "MemTotal");  // "8123456 kB"
  const long long memory_kib = std::strtoll(memory.c_str(), nullptr, 10);
  nlohmann::ordered_json machine{
      {"host", name.nodename},
      {"kernel", std::string(name.sysname) + " " + name.release + " " + name.machine},
      {"cpu", cpu::proc_value("/proc/cpuinfo", "model name")},
      {"cpus", online_cpus()},
      {"affinity", cpu_list_text(affinity_cpus())},
      {"memory_bytes", memory_kib * 1024},
      {"interfaces", fmt::format("{}", fmt::join(network_interfaces(), ", "))}};
  std::ifstream stream("/proc/driver/nvidia/version");
  std::string line;
  if (std::getline(stream, line))
    if (const std::string driver = driver_version(line + " "); !driver.empty()) machine["driver"] = driver;
  return machine;
}

nlohmann::ordered_json environment_json(const std::vector<std::string>& machines) {
  nlohmann::ordered_json environment = nlohmann::ordered_json::parse(machines.front());
  environment["build"] = build_json();
  environment["variables"] = recorded_variables(environ);
  std::set<std::string> hosts{environment.at("host").get<std::string>()};
  for (const std::string& text : machines) {
    const auto machine = nlohmann::ordered_json::parse(text);
    if (hosts.insert(machine.at("host").get<std::string>()).second)
      environment["other_hosts"].push_back(machine);
  }
  return environment;
}

std::string usual_value(const std::vector<std::string>& values) {
  std::map<std::string_view, std::size_t> counts;
  for (const std::string& value : values) ++counts[value];
  for (const auto& [value, count] : counts)
    if (2 * count > values.size()) return std::string(value);
  return values.size() == 2 ? values.front() : "";
}

std::vector<std::string> odd_hosts(const std::vector<std::string>& texts) {
  constexpr std::pair<const char*, const char*> kCompared[]{{"cpu", "processor"},
                                                            {"cpus", "CPUs"},
                                                            {"threads", "threads per rank"},
                                                            {"interfaces", "interfaces"},
                                                            {"driver", "driver"}};
  constexpr std::size_t kMostNamed = 3;
  Machines machines;
  std::string first;
  for (const std::string& text : texts) {
    const auto machine = nlohmann::ordered_json::parse(text);
    const auto host = machine.at("host").get<std::string>();
    if (machines.empty()) first = host;
    machines.emplace(host, machine);
  }
  std::vector<std::string> sentences;
  for (const auto& [host, machine] : machines) {
    std::string differences;
    for (const auto& [property, name] : kCompared) {
      const std::string usual = common_value(machines, first, property);
      if (const std::string own = property_text(machine, property); !usual.empty() && own != usual)
        append_part(differences,
                    fmt::format("{} {} where {} {}", name, own,
                                machines.size() == 2 ? printable(first) + " has" : "most have", usual));
    }
    if (!differences.empty() && sentences.size() < kMostNamed)
      sentences.push_back(fmt::format("host {} is unlike the others: {}", printable(host), differences));
  }
  return sentences;
}

std::string cpu_list_text(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t first = 0; first < cpus.size();) {
    std::size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    append_part(text, std::to_string(cpus[first]), ",");
    if (last > first) text += fmt::format("-{}", cpus[last]);
    first = last + 1;
  }
  return text;
}

int online_cpus() {
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

int cpus_per_core() {
  const std::vector<int> cpus = affinity_cpus();
  if (cpus.empty()) return 1;
  // One bit per CPU of the core, in hexadecimal groups: "00000003".
  std::ifstream stream(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings", cpus.front()));
  std::string bits;
  stream >> bits;
  int count = 0;
  for (const char digit : bits)  // a comma is none, and counts 0
    count += std::popcount(std::strtoul(std::string(1, digit).c_str(), nullptr, 16));
  return std::max(1, count);
}

void require_address_space(double bytes) {
  // 440 to 520 MiB were seen with two ranks, by Open MPI's threads and shared memory, and by cuDNN.
  constexpr double kNeeded = 640.0 * 1024 * 1024;
  if (std::isfinite(bytes)) ::mallopt(M_ARENA_MAX, 1);
  if (bytes >= kNeeded) return;
  throw Error(
      ExitCode::out_of_memory,
      "this process may map {:.0f} more bytes (ulimit -v, ulimit -d) where MPI and the libraries want {:.0f} "
      "before training takes any; raise that limit",
      bytes, kNeeded);
}

std::string placement_text(const std::string& host, const std::vector<int>& cpus) {
  return host + " " + cpu_list_text(cpus);
}

ThreadShare threads_for_this_rank(const std::vector<std::string>& placements, int rank, int host_cpus,
                                  int host_cpus_per_core) {
  const std::string& mine = placements.at(static_cast<std::size_t>(rank));
  const std::string host = mine.substr(0, mine.find(' ') + 1);
  int sharing = 0, before_me = 0, on_host = 0;
  for (std::size_t other = 0; other < placements.size(); ++other) {
    on_host += placements[other].starts_with(host);
    if (placements[other] != mine) continue;
    ++sharing;
    before_me += other < static_cast<std::size_t>(rank);
  }
  const int cpus = cpus_of_placement(mine);
  ThreadShare share;
  share.threads = std::max(1, cpus / sharing + (before_me < cpus % sharing ? 1 : 0));
  const int fair = host_cpus / on_host;
  if (cpus > 0 && cpus <= host_cpus_per_core && fair > cpus)
    share.remark = fmt::format(
        "rank {} is bound to one core of a host with {} CPUs; mpirun --map-by slot:PE={} or --bind-to none "
        "lets it use its share",
        rank, host_cpus, std::max(1, fair / host_cpus_per_core));
  return share;
}

void ensure_short_openmp_waits(char** argv) {
  // Set by the user, or by this function before.
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  if (setenv("OMP_WAIT_POLICY", "passive", 1) != 0 || setenv("GOMP_SPINCOUNT", "3000", 1) != 0) return;
  execv("/proc/self/exe", argv);  // returns only if it failed: then the run is slower, and right
}

}  // namespace plumb
