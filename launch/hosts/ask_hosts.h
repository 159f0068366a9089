// Hosts as options name them, the way of a command to them (ssh, or another program in its place), and their
// answers.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/options/option_table.h"
#include "base/process/side_by_side.h"
#include "launch/host_names.h"
#include "launch/hosts/findings.h"

namespace plumb {

// Hosts and the way to them, as options give them.
struct HostArguments {
  std::string hosts, hostfile;
  std::string ssh;  // words of a command that takes a host and a command line, as ssh does
  double timeout_seconds = 20;
};

// -H, --hostfile, --ssh and --timeout-s.
OptionGroup host_options(HostArguments& arguments);

// The hosts that -H or --hostfile names; empty: neither was given. Throws Error(usage) or Error(bad_data).
std::vector<std::string> named_hosts(const HostArguments& arguments);

struct HostTransport {
  CommandWords agent;                      // empty: only to this host
  std::vector<std::string> own_addresses;  // of this host, which needs no agent
};

// By --ssh, else by Open MPI's variable OMPI_MCA_plm_rsh_agent, else ssh without questions. Throws
// Error(unavailable) if there is no such program.
HostTransport transport_of(const HostArguments& arguments);

// The words that run `command` on `host`, quoted for the shell that ssh starts there; this host and srun
// start none.
CommandWords words_on(const HostTransport& transport, const HostAnswer& host, const CommandWords& command);

// What a command printed, from its first "{" on: a login may print something before.
std::string_view json_in(std::string_view said);

// Fills failure, failure_detail and remedy of a host whose command gave no answer.
void explain_failure(const CommandEnd& end, const std::string& program, double timeout_seconds,
                     HostAnswer& answer);

// Asks every host, names looked up here first. `told`: the number of hosts that are through.
std::vector<HostAnswer> ask_hosts(const std::vector<std::string>& hosts, const HostArguments& arguments,
                                  const HostTransport& transport, const HostQuestions& questions,
                                  const std::function<void(std::size_t)>& told, const SignalWatch& signals);

// This host alone, under its own name.
HostAnswer ask_this_host(const HostQuestions& questions, const SignalWatch& signals);

}  // namespace plumb
