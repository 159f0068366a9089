// Network addresses of the hosts of a job, and what makes Open MPI's TCP hang or crawl: an address that two
// hosts have, networks that they share.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/job.h"

namespace plumb {

struct InterfaceAddress {
  std::string interface;  // "eth0"
  std::string address;    // "10.77.0.1"
  std::string network;    // "10.77.0.0/16"
  bool operator==(const InterfaceAddress&) const = default;
};

struct HostAddresses {
  std::string host;
  std::vector<InterfaceAddress> addresses;
};

// Interfaces of this host that are up: IPv4, and IPv6 without link-local addresses; no loopback.
HostAddresses addresses_of_this_host();

// "node1 eth0=10.77.0.1/16 docker0=172.17.0.1/16", at most `most_bytes`: later addresses are left out.
std::string to_text(const HostAddresses& host, std::size_t most_bytes);
// Words that are no address are left out.
HostAddresses host_addresses_of(std::string_view text);

// Interfaces that Open MPI's TCP may use: names and networks with commas between, as its parameters
// btl_tcp_if_include and btl_tcp_if_exclude have them. Empty: no choice was made.
struct InterfaceChoice {
  std::string include, exclude;
};
// By the variables that mpirun --mca sets.
InterfaceChoice chosen_interfaces();

// A sentence with the remedy if hosts have the same address, and one if hosts share several networks. Hosts
// of one name count as one. Interfaces that weren't chosen are left out.
std::vector<std::string> shared_address_warnings(std::span<const HostAddresses> hosts,
                                                 const InterfaceChoice& choice);

// For Job to call in front of its first message, which may hang: rank 0 reads the addresses of at most 256
// ranks through the launcher and returns the warnings, other ranks none. Nothing but under Open MPI's mpirun
// over several hosts, and nothing where UCX or another carrier than its TCP is asked for.
std::vector<std::string> early_address_warnings(const Job& job);

}  // namespace plumb
