// What doctor, screen and bench_allreduce found on hosts, as checks of a verdict.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/hosts/findings.h"
#include "launch/hosts/screening.h"
#include "launch/verdict/expectation.h"
#include "launch/verdict/verdict.h"
#include "results/record/links.h"

namespace plumb {

// Faults that keep a run from starting fail; warnings are remarks. `expectation` may be null, here and below.
void add_facts(Verdict& verdict, const std::vector<HostAnswer>& answers, const Expectation* expectation);

// Hosts on which other programs run, so that a small loss there says nothing; all if some share a machine.
struct BusyHosts {
  std::vector<std::string> names;
  std::size_t on_one_machine = 1;  // names of one machine, as containers are, which share its CPUs
};
BusyHosts busy_hosts(const std::vector<HostAnswer>& answers);

// Devices alone and together against what is expected of their kind, else against others of their kind. A
// device of a busy host fails below 70 % of its share of the machine only.
void add_devices(Verdict& verdict, const std::vector<ScreenedDevice>& devices, const Expectation* expectation,
                 const BusyHosts& busy);

// Allreduces within hosts against what is expected, else against the other hosts.
void add_insides(Verdict& verdict, const std::vector<InsideOfHost>& insides, const Expectation* expectation);

// What a link between two hosts should reach, and who says so.
struct ExpectedLink {
  double bytes_per_second = 0;
  std::string source;  // "--link", "expect.json", "network cards"
};

// Pairs of hosts against what is expected, and against each other. A link of a busy host fails only
// below half.
void add_links(Verdict& verdict, const Links& links, const std::optional<ExpectedLink>& expected,
               const BusyHosts& busy = {});

}  // namespace plumb
