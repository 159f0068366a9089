// Facts of many hosts, asked side by side.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/hosts/transport.h"

namespace plumb {

// Asks every host, names looked up here first. `told`: the number of hosts that are through.
std::vector<HostAnswer> ask_hosts(const std::vector<std::string>& hosts, const HostArguments& arguments,
                                  const HostTransport& transport, const HostQuestions& questions,
                                  const std::function<void(std::size_t)>& told, const SignalWatch& signals);

// This host alone, under its own name.
HostAnswer ask_this_host(const HostQuestions& questions, const SignalWatch& signals);

}  // namespace plumb
