// Network addresses of the hosts of a job. An address that two hosts have makes MPI's TCP hang.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

std::string own_host();  // its name
// Interfaces of this host that are up: IPv4, and IPv6 without link-local addresses; no loopback.
HostAddresses addresses_of_this_host();

// "node1 eth0 10.77.0.1 10.77.0.0/16 docker0 172.17.0.1 172.17.0.0/16"
std::string to_text(const HostAddresses& host);
HostAddresses host_addresses_of(std::string_view text);

// Interfaces that MPI's TCP may use: names and networks with commas between, as Open MPI's parameters
// btl_tcp_if_include and btl_tcp_if_exclude have them. Empty: no choice was made.
struct InterfaceChoice {
  std::string include, exclude;
};
// A sentence with the remedy if hosts have the same address; else empty. Hosts of one name count as one.
// Interfaces that weren't chosen are left out.
std::string same_address_warning(std::span<const HostAddresses> hosts, const InterfaceChoice& choice);

// The address at which others reach each host, by host name: one in a network shared by all hosts if there
// is one, else the host's first. Skips interfaces that weren't chosen and addresses of more than one host; a
// host that has no other address is missing.
std::map<std::string, std::string> reachable_addresses(std::span<const HostAddresses> hosts,
                                                       const InterfaceChoice& choice);

// Says how long rank 0 has waited for the first message, and what to do.
std::string late_messages_text(const HostAddresses& own, double waited_seconds);

}  // namespace plumb
