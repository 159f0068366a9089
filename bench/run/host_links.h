// Before a run over several hosts: how fast their links are, and who is slow.
#pragma once

#include <optional>

#include "bench/output/messages.h"
#include "comm/job.h"
#include "results/record/links.h"

namespace plumb {

// Time of the probe in all, but for links far slower than their neighbours and for making connections.
inline constexpr double kProbeSeconds = 1;

// Warns of addresses and networks that hosts share (bench/links/host_addresses.h), unless `quiet`: for Job to
// call in front of its first message, which such an address may keep from arriving.
void warn_of_shared_addresses(const Job& job, bool quiet);

// Measures every pair of hosts over MPI, with over 33 hosts 32 pairs of each, and warns of a host or link
// that reaches under 0.4 of what is usual. Returns the links on rank 0; nothing there where a single host or
// hosts of one name leave nothing to record. Every rank calls it.
std::optional<Links> probe_host_links(const Job& job, Messages& messages);

}  // namespace plumb
