#include "bench/links/address_check.h"

#include <vector>

#include "base/machine/host_addresses.h"
#include "base/process/this_process.h"

namespace plumb {
namespace {

// By the variables that mpirun --mca sets (OMPI_MCA_…), for MPICH FI_TCP_IFACE or UCX_NET_DEVICES.
InterfaceChoice chosen_interfaces() {
  if (mpi_library().starts_with("Open MPI"))
    return {environment_variable("OMPI_MCA_btl_tcp_if_include"),
            environment_variable("OMPI_MCA_btl_tcp_if_exclude")};
  const std::string by_libfabric = environment_variable("FI_TCP_IFACE");
  return {.include = by_libfabric.empty() ? environment_variable("UCX_NET_DEVICES") : by_libfabric};
}

// False where UCX or another carrier than TCP is asked of Open MPI: addresses don't matter to it.
bool uses_tcp() {
  const std::string carrier = environment_variable("OMPI_MCA_pml"),
                    links = environment_variable("OMPI_MCA_btl");
  if (carrier == "ucx" || carrier == "cm") return false;
  return links.empty() || links.starts_with('^') || links.find("tcp") != std::string::npos;
}

// Returns the addresses of every host, on every rank. Every rank calls it.
std::vector<HostAddresses> host_addresses(const Job& job) {
  const bool speaks = job.local_rank() == 0;
  std::vector<HostAddresses> hosts;
  for (const std::string& text : job.all_gather(speaks ? to_text(addresses_of_this_host()) : ""))
    if (!text.empty()) hosts.push_back(host_addresses_of(text));
  return hosts;
}

}  // namespace

void check_addresses(const Job& job, const Warn& warn) {
  if (job.nodes() < 2) return;
  const std::vector<HostAddresses> hosts = host_addresses(job);
  if (job.rank() != 0 || !uses_tcp()) return;
  if (const std::string sentence = same_address_warning(hosts, chosen_interfaces()); !sentence.empty())
    warn(sentence);
}

std::string reachable_address(const Job& job) {
  if (job.nodes() == 1) return "127.0.0.1";
  const auto reachable = reachable_addresses(host_addresses(job), chosen_interfaces());
  const auto own = reachable.find(own_host());
  return own == reachable.end() ? "" : own->second;
}

}  // namespace plumb
