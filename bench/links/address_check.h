// Checks the addresses of a job's hosts. An address that two hosts share can keep messages from arriving
// (base/machine/host_addresses.h).
#pragma once

#include <functional>
#include <string>

#include "comm/job.h"

namespace plumb {

using Warn = std::function<void(const std::string& sentence)>;

// Warns on rank 0 of addresses that hosts share. Every rank calls it.
void check_addresses(const Job& job, const Warn& warn);

// The address at which other ranks reach this host; empty if it has none of its own. Every rank calls it.
std::string reachable_address(const Job& job);

}  // namespace plumb
