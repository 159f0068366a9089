// The addresses of a job's hosts, before and after its first message.
#pragma once

#include <vector>

#include "base/machine/host_addresses.h"
#include "comm/job.h"

namespace plumb {

// By the variables that mpirun --mca sets (OMPI_MCA_…), for MPICH FI_TCP_IFACE or UCX_NET_DEVICES.
InterfaceChoice chosen_interfaces();

// False where UCX or another carrier than TCP is asked of Open MPI: addresses don't concern it.
bool carries_over_tcp();

// Before the first message, which may hang: on rank 0 the addresses of at most 256 ranks, through the
// launcher; on other ranks nothing. Works only under Open MPI's mpirun over several hosts.
std::vector<HostAddresses> early_host_addresses(const Job& job);
// The addresses of every host, by messages, for every rank. Every rank calls it.
std::vector<HostAddresses> host_addresses(const Job& job);

}  // namespace plumb
