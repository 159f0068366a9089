#include "bench/links/addresses_of_hosts.h"

#include <string>

#include "base/environment.h"
#include "comm/name_service.h"

namespace plumb {

namespace {
constexpr const char* kRanksOfHost = "OMPI_COMM_WORLD_LOCAL_SIZE";  // set by Open MPI's mpirun
}  // namespace

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

bool carries_over_tcp() {
  const std::string carrier = environment_variable("OMPI_MCA_pml"),
                    links = environment_variable("OMPI_MCA_btl");
  if (carrier == "ucx" || carrier == "cm") return false;
  return links.empty() || links.starts_with('^') || links.find("tcp") != std::string::npos;
}

std::vector<HostAddresses> early_host_addresses(const Job& job) {
  constexpr std::size_t kMostHosts = 256;
  // srun, which doesn't set it, has no name service.
  const std::string ranks_here = environment_variable(kRanksOfHost);
  if (ranks_here.empty() || ranks_here == std::to_string(job.size())) return {};
  std::vector<HostAddresses> hosts;
  for (const std::string& text :
       published_texts(job, to_text(addresses_of_this_host(), kMostPublishedBytes), kMostHosts))
    hosts.push_back(host_addresses_of(text));
  return hosts;
}

std::vector<HostAddresses> host_addresses(const Job& job) {
  const bool speaks = job.local_rank() == 0;
  std::vector<HostAddresses> hosts;
  for (const std::string& text :
       job.all_gather(speaks ? to_text(addresses_of_this_host(), kMostPublishedBytes) : ""))
    if (!text.empty()) hosts.push_back(host_addresses_of(text));
  return hosts;
}

}  // namespace plumb
