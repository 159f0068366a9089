// Addresses of host names, many at once.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace plumb {

// The addresses, sorted, of every name that was looked up within `seconds`. A look-up that has begun is
// waited for.
std::map<std::string, std::vector<std::string>> look_up_names(const std::vector<std::string>& names,
                                                              double seconds);

// Of the hosts, by name with their addresses, those that give no answer to a TCP connection within `seconds`,
// each with the reason; a refused connection is an answer. Loopback addresses are not tried.
std::map<std::string, std::string> unreached_hosts(
    const std::map<std::string, std::vector<std::string>>& hosts, double seconds);

// "127.0.1.1", "::1": it leads every host to itself.
bool is_loopback(const std::string& address);

}  // namespace plumb
