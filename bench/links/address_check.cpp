#include "bench/links/address_check.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "base/environment.h"
#include "base/machine/host_addresses.h"
#include "base/text.h"

namespace plumb {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr const char* kRanksOfHost = "OMPI_COMM_WORLD_LOCAL_SIZE";  // set by Open MPI's mpirun
constexpr std::size_t kMostHosts = 256;
constexpr std::size_t kMostTextBytes = 1000;  // Open MPI's MPI_MAX_PORT_NAME is 1024
constexpr std::chrono::seconds kPatienceForTexts{2};
constexpr std::chrono::milliseconds kBetweenLookups{5};

// By the variables that mpirun --mca sets (OMPI_MCA_…), for MPICH FI_TCP_IFACE or UCX_NET_DEVICES.
InterfaceChoice chosen_interfaces() {
  if (!mpi_library().starts_with("Open MPI")) {
    const std::string by_libfabric = environment_variable("FI_TCP_IFACE");
    return {.include = by_libfabric.empty() ? environment_variable("UCX_NET_DEVICES") : by_libfabric,
            .chooser = Chooser::mpich};
  }
  return {environment_variable("OMPI_MCA_btl_tcp_if_include"),
          environment_variable("OMPI_MCA_btl_tcp_if_exclude"),
          environment_variable(kRanksOfHost).empty() ? Chooser::open_mpi : Chooser::mpirun};
}

// False where UCX or another carrier than TCP is asked of Open MPI: addresses don't matter to it.
bool uses_tcp() {
  const std::string carrier = environment_variable("OMPI_MCA_pml"),
                    links = environment_variable("OMPI_MCA_btl");
  if (carrier == "ucx" || carrier == "cm") return false;
  return links.empty() || links.starts_with('^') || links.find("tcp") != std::string::npos;
}

// Polls: MPI_Lookup_name doesn't wait for a rank that is late.
std::optional<std::string> looked_up(const std::string& name, SteadyTime deadline) {
  char text[MPI_MAX_PORT_NAME] = {};
  while (MPI_Lookup_name(name.c_str(), MPI_INFO_NULL, text) != MPI_SUCCESS) {
    if (std::chrono::steady_clock::now() > deadline) return std::nullopt;
    std::this_thread::sleep_for(kBetweenLookups);
  }
  return text;
}

// Before the first message, which may hang: on rank 0 the addresses of at most kMostHosts ranks, evenly
// spread; on other ranks nothing. Every rank publishes its own by MPI_Publish_name, which Open MPI's mpirun
// answers within a millisecond. Texts that don't arrive within two seconds are left out. Works only under
// Open MPI's mpirun over several hosts: srun, which doesn't set kRanksOfHost, has no name service.
std::vector<HostAddresses> early_host_addresses(const Job& job) {
  const std::string ranks_here = environment_variable(kRanksOfHost);
  // PMIx's name of this job, so that jobs of one launcher don't read each other's texts.
  const std::string space = environment_variable("PMIX_NAMESPACE");
  if (ranks_here.empty() || ranks_here == std::to_string(job.size()) || space.empty()) return {};
  const std::string mine = to_text(addresses_of_this_host(), kMostTextBytes);
  const auto name_of_rank = [&](std::size_t rank) { return fmt::format("plumbline.{}.{}", space, rank); };
  MPI_Comm_set_errhandler(MPI_COMM_SELF,
                          MPI_ERRORS_RETURN);  // where MPI 4 raises errors without communicator
  const std::string own_name = name_of_rank(static_cast<std::size_t>(job.rank()));
  if (mine.size() >= MPI_MAX_PORT_NAME ||
      MPI_Publish_name(own_name.c_str(), MPI_INFO_NULL, mine.c_str()) != MPI_SUCCESS || job.rank() != 0)
    return {};
  const std::size_t ranks = static_cast<std::size_t>(job.size()), count = std::min(ranks, kMostHosts);
  const SteadyTime deadline = std::chrono::steady_clock::now() + kPatienceForTexts;
  std::vector<HostAddresses> hosts;
  for (std::size_t i = 0; i < count; ++i)
    if (const auto text = looked_up(name_of_rank(i * ranks / count), deadline))
      hosts.push_back(host_addresses_of(*text));
  return hosts;
}

// The addresses of every host, by messages, for every rank.
std::vector<HostAddresses> host_addresses(const Job& job) {
  const bool speaks = job.local_rank() == 0;
  std::vector<HostAddresses> hosts;
  for (const std::string& text :
       job.all_gather(speaks ? to_text(addresses_of_this_host(), kMostTextBytes) : ""))
    if (!text.empty()) hosts.push_back(host_addresses_of(text));
  return hosts;
}

void warn_of_shared(const std::vector<HostAddresses>& hosts, const Warn& warn) {
  if (!uses_tcp()) return;
  for (const std::string& sentence : shared_address_warnings(hosts, chosen_interfaces())) warn(sentence);
}

}  // namespace

JobStart AddressCheck::at_start() {
  JobStart start;
  if (compares_)
    start.before_messages = [this](const Job& job) {
      const std::vector<HostAddresses> hosts = early_host_addresses(job);
      compared_ = !hosts.empty();
      warn_of_shared(hosts, warn_);
    };
  start.messages_are_late = [this] {
    warn_(late_messages_text(addresses_of_this_host(), kPatienceForFirstMessages, chosen_interfaces()));
  };
  return start;
}

void AddressCheck::after_start(const Job& job) {
  if (!compares_ || job.nodes() < 2) return;
  const std::vector<HostAddresses> hosts = host_addresses(job);
  if (!compared_ && job.rank() == 0) warn_of_shared(hosts, warn_);
}

std::string reachable_address(const Job& job) {
  if (job.nodes() == 1) return "127.0.0.1";
  const auto reachable = reachable_addresses(host_addresses(job), chosen_interfaces());
  const auto own = reachable.find(own_host());
  return own == reachable.end() ? "" : own->second;
}

}  // namespace plumb
