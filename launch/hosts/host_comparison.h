// Hosts beside each other: which one differs from the others, and in what.
#pragma once

#include <vector>

#include "launch/hosts/findings.h"

namespace plumb {

// Program, libraries, Open MPI, processor, memory, GPUs, networks, limits and file systems. Findings name the
// odd ones against the value that most hosts have, of two hosts the second; where no value has a majority all
// are named.
void compare_hosts(const std::vector<const HostAnswer*>& answers, HostNotes& found);

// Hosts that others don't reach over the network, even where a login does.
void check_reach(const std::vector<const HostAnswer*>& answers, HostNotes& found);

// Clocks that differ from the median of the hosts, of one or two hosts from the clock of the host that asked.
void compare_clocks(const std::vector<const HostAnswer*>& answers, HostNotes& found);

// Names: without an address, that lead to loopback or to another host's address, that hosts resolve
// differently, and two names of one host.
void compare_names(const std::vector<const HostAnswer*>& answers, HostNotes& found);

}  // namespace plumb
