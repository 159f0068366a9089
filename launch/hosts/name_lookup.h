// Addresses of host names, many at once.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace plumb {

// The addresses of every name that was looked up within `seconds`, sorted; empty: it has none. Names for
// which the time didn't suffice are left out. A look-up that has begun is waited for.
std::map<std::string, std::vector<std::string>> look_up_names(const std::vector<std::string>& names,
                                                              double seconds);

// "127.0.1.1", "::1": it leads every host to itself.
bool is_loopback(const std::string& address);

}  // namespace plumb
