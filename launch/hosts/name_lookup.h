// Addresses of host names, many at once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/process/this_process.h"

namespace plumb {

// The addresses, sorted, of every name whose look-up took at most `seconds`.
std::map<std::string, std::vector<std::string>> look_up_names(const std::vector<std::string>& names,
                                                              double seconds, const SignalWatch& signals);

// Tries a TCP connection to each host (names with their addresses), and returns the hosts that give no answer
// within `seconds`, with the reason. A refused connection is an answer. Loopback addresses are not tried.
std::map<std::string, std::string> unreached_hosts(
    const std::map<std::string, std::vector<std::string>>& hosts, double seconds, const SignalWatch& signals);

// "127.0.1.1", "::1": it leads every host to itself.
bool is_loopback(const std::string& address);

}  // namespace plumb
