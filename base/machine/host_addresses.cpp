#include "base/machine/host_addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/paths.h"
#include "base/text.h"

namespace plumb {
namespace {

// Empty for what is neither IPv4 nor IPv6.
std::span<const unsigned char> bytes_of(const sockaddr& address) {
  const auto bytes = [](const auto& of) {
    return std::span(reinterpret_cast<const unsigned char*>(&of), sizeof of);
  };
  if (address.sa_family == AF_INET) return bytes(reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  if (address.sa_family == AF_INET6) return bytes(reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  return {};
}

std::string address_text(int family, const unsigned char* bytes) {
  char text[INET6_ADDRSTRLEN] = {};
  return inet_ntop(family, bytes, text, sizeof text) ? text : "";
}

// What getifaddrs says of one interface; nothing for what doesn't count.
std::optional<InterfaceAddress> usable_address(const ifaddrs& one) {
  if (!one.ifa_addr || !one.ifa_netmask || !(one.ifa_flags & IFF_UP) || (one.ifa_flags & IFF_LOOPBACK))
    return std::nullopt;
  const auto address = bytes_of(*one.ifa_addr), mask = bytes_of(*one.ifa_netmask);
  const int family = one.ifa_addr->sa_family;
  std::array<unsigned char, sizeof(in6_addr)> network{};
  int prefix = 0;
  for (std::size_t i = 0; i < std::min(address.size(), mask.size()); ++i) {
    network[i] = address[i] & mask[i];
    prefix += std::popcount(mask[i]);
  }
  InterfaceAddress result{.interface = one.ifa_name,
                          .address = address_text(family, address.data()),
                          .network = fmt::format("{}/{}", address_text(family, network.data()), prefix)};
  if (address.empty() || result.address.starts_with("fe80:")) return std::nullopt;  // of the link alone
  return result;
}

bool is_listed(const InterfaceAddress& one, const std::string& list) {
  return std::ranges::any_of(split(list, ','), [&](const std::string& word) {
    return word == one.interface || word == one.network;
  });
}

// The chosen interfaces of each host, hosts by name.
using AddressesByHost = std::map<std::string, std::vector<InterfaceAddress>>;

AddressesByHost chosen_addresses(std::span<const HostAddresses> hosts, const InterfaceChoice& choice) {
  AddressesByHost chosen;
  for (const HostAddresses& host : hosts) {
    std::vector<InterfaceAddress>& own = chosen[host.host];
    for (const InterfaceAddress& one : host.addresses)
      if ((choice.include.empty() || is_listed(one, choice.include)) && !is_listed(one, choice.exclude) &&
          std::ranges::find(own, one) == own.end())
        own.push_back(one);
  }
  return chosen;
}

// "n1, n2 and n3", "n1, n2, n3 and 29 more hosts"
std::string hosts_text(const std::vector<std::string>& hosts) {
  constexpr std::size_t kMostHostsNamed = 3;
  const bool all = hosts.size() <= kMostHostsNamed;
  std::string text;
  for (std::size_t i = 0; i < std::min(hosts.size(), kMostHostsNamed); ++i)
    append_part(text, printable(hosts[i]), all && i + 1 == hosts.size() ? " and " : ", ");
  return all ? text : fmt::format("{} and {} more", text, hosts.size() - kMostHostsNamed);
}

struct AddressHolders {
  std::vector<std::string> hosts;
  std::string interface;  // of the first
};

// Where an address that several hosts have stands: "172.17.0.1 (docker0 on n1 and n2)".
std::string same_addresses_text(const std::map<std::string, AddressHolders>& holders) {
  std::string addresses, interfaces;
  for (const auto& [address, held] : holders) {
    const auto& [hosts, interface] = held;
    const std::string name = printable(interface);
    append_part(addresses, fmt::format("{} ({} on {})", address, name, hosts_text(hosts)));
    append_part(interfaces, name, ",");
  }
  return fmt::format(
      "hosts have the same address: {0}; messages can go to the wrong host and hang the run: leave the "
      "interface out by OMPI_MCA_btl_tcp_if_exclude={1},lo (Open MPI) and NCCL_SOCKET_IFNAME=^{1},lo (NCCL), "
      "or name the one that joins the hosts by FI_TCP_IFACE or UCX_NET_DEVICES (MPICH)",
      addresses, interfaces);
}

// Removes addresses that several hosts have. Returns a warning of them, or nothing.
std::string take_same_addresses(AddressesByHost& chosen) {
  std::map<std::string, AddressHolders> holders;
  for (const auto& [host, addresses] : chosen)
    for (const InterfaceAddress& one : addresses)
      holders.try_emplace(one.address, AddressHolders{{}, one.interface}).first->second.hosts.push_back(host);
  std::erase_if(holders, [](const auto& entry) { return entry.second.hosts.size() < 2; });
  for (auto& [host, addresses] : chosen)
    std::erase_if(addresses, [&](const InterfaceAddress& one) { return holders.contains(one.address); });
  return holders.empty() ? "" : same_addresses_text(holders);
}

}  // namespace

std::string own_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

HostAddresses addresses_of_this_host() {
  HostAddresses result{.host = own_host()};
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return result;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, freeifaddrs);
  for (const ifaddrs* one = all; one; one = one->ifa_next)
    if (const auto address = usable_address(*one)) result.addresses.push_back(*address);
  return result;
}

std::string to_text(const HostAddresses& host) {
  std::string text = host.host;
  for (const InterfaceAddress& one : host.addresses)
    text += fmt::format(" {} {} {}", one.interface, one.address, one.network);
  return text;
}

HostAddresses host_addresses_of(std::string_view text) {
  const std::vector<std::string> words = split(text, ' ');
  HostAddresses host{.host = words.front()};
  for (std::size_t i = 3; i < words.size(); i += 3)
    host.addresses.push_back({words[i - 2], words[i - 1], words[i]});
  return host;
}

std::string same_address_warning(std::span<const HostAddresses> hosts, const InterfaceChoice& choice) {
  AddressesByHost chosen = chosen_addresses(hosts, choice);
  return take_same_addresses(chosen);
}

std::map<std::string, std::string> reachable_addresses(std::span<const HostAddresses> hosts,
                                                       const InterfaceChoice& choice) {
  AddressesByHost chosen = chosen_addresses(hosts, choice);
  take_same_addresses(chosen);
  std::map<std::string, std::set<std::string>> hosts_in_network;
  for (const auto& [host, addresses] : chosen)
    for (const InterfaceAddress& one : addresses) hosts_in_network[one.network].insert(host);
  std::map<std::string, std::string> reachable;
  for (const auto& [host, addresses] : chosen) {
    if (addresses.empty()) continue;
    const auto shared = std::ranges::find_if(addresses, [&](const InterfaceAddress& one) {
      return hosts_in_network[one.network].size() == chosen.size();
    });
    reachable[host] = (shared != addresses.end() ? *shared : addresses.front()).address;
  }
  return reachable;
}

std::string late_messages_text(const HostAddresses& own, double waited_seconds) {
  std::string text = fmt::format(
      "rank 0 on {} has waited {:.0f} s for the first message of another rank, and waits on: another rank "
      "hasn't started, hosts can't reach each other, or two of them have the same address",
      printable(own.host), waited_seconds);
  if (own.addresses.empty()) return text;
  const InterfaceAddress& first = own.addresses.front();
  return text + fmt::format(
                    "; choose the network that joins all hosts, for example with "
                    "OMPI_MCA_btl_tcp_if_include={0} (Open "
                    "MPI), FI_TCP_IFACE={1} or UCX_NET_DEVICES={1} (MPICH) and NCCL_SOCKET_IFNAME={1} (NCCL)",
                    first.network, printable(first.interface));
}

}  // namespace plumb
