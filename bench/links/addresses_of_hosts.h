// The addresses of all hosts of a job, in front of its first message and behind it.
#pragma once

#include <vector>

#include "base/machine/host_addresses.h"
#include "comm/job.h"

namespace plumb {

// By the variables that mpirun --mca sets (OMPI_MCA_…), for MPICH FI_TCP_IFACE or UCX_NET_DEVICES.
InterfaceChoice chosen_interfaces();

// False where UCX or another carrier than TCP is asked of Open MPI: addresses don't concern it.
bool carries_over_tcp();

// For Job to call in front of its first message, which may hang: rank 0 reads the addresses of at most 256
// ranks through the launcher, other ranks none. Nothing but under Open MPI's mpirun over several hosts.
std::vector<HostAddresses> early_host_addresses(const Job& job);
// The addresses of every host, by messages, for every rank. Every rank calls it.
std::vector<HostAddresses> host_addresses(const Job& job);

}  // namespace plumb
