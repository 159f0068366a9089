// Before a run over several hosts: whether messages can go astray, how fast links are, and who is slow.
#pragma once

#include <optional>

#include "base/console/messages.h"
#include "comm/job.h"
#include "results/record/links.h"

namespace plumb {

// Time of the probe in all, but for links far slower than their neighbors and for making connections.
inline constexpr double kProbeSeconds = 1;

// Warns of addresses and networks that hosts share (bench/links/host_addresses.h): in front of the first
// message, which such an address may keep from arriving, where the launcher carries texts; otherwise once the
// first messages have arrived. First messages that don't arrive are told of, too.
class AddressCheck {
 public:
  // `compares`: false leaves out comparing. `quiet`: nothing is printed.
  AddressCheck(bool compares, bool quiet) : compares_(compares), quiet_(quiet) {}

  // For Job's constructor; refers to this.
  JobStart at_start();
  // Compares unless that was done. Every rank calls it.
  void after_start(const Job& job);

 private:
  bool compares_, quiet_, compared_ = false;
};

// Warns of a Slurm job of several tasks in which this process runs alone, started without srun or mpirun, and
// of an mpirun that was given more hosts than ranks.
void warn_of_idle_places(bool quiet);

// Measures every pair of hosts over MPI, with over 33 hosts 32 pairs of each, and warns of a host or link
// that reaches under 0.4 of what is usual. Returns the links on rank 0; nothing there where a single host or
// hosts of one name leave nothing to record. Every rank calls it.
std::optional<Links> probe_host_links(const Job& job, Messages& messages);

}  // namespace plumb
