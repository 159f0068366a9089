#include "base/machine/host_addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/paths.h"
#include "base/text.h"

namespace plumb {
namespace {

constexpr int kBitsOfByte = 8;

// Bytes of an address, with its family.
struct RawAddress {
  int family = AF_INET;
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  int count = sizeof(in_addr);
};

std::optional<RawAddress> raw_address(const std::string& text) {
  RawAddress raw;
  if (inet_pton(AF_INET, text.c_str(), raw.bytes.data()) == 1) return raw;
  raw.family = AF_INET6;
  raw.count = sizeof(in6_addr);
  if (inet_pton(AF_INET6, text.c_str(), raw.bytes.data()) == 1) return raw;
  return std::nullopt;
}

std::string address_text(const RawAddress& raw) {
  char text[INET6_ADDRSTRLEN] = {};
  return inet_ntop(raw.family, raw.bytes.data(), text, sizeof text) ? text : "";
}

// "10.77.0.1/16" to its address and "10.77.0.0/16".
std::optional<InterfaceAddress> interface_address(std::string_view interface, std::string_view with_prefix) {
  const std::size_t slash = with_prefix.find('/');
  if (interface.empty() || slash == std::string_view::npos) return std::nullopt;
  std::optional<RawAddress> raw = raw_address(std::string(with_prefix.substr(0, slash)));
  int prefix = 0;
  const char* const end = with_prefix.data() + with_prefix.size();
  const auto [rest, error] = std::from_chars(with_prefix.data() + slash + 1, end, prefix);
  if (!raw || error != std::errc() || rest != end || prefix < 0 || prefix > kBitsOfByte * raw->count)
    return std::nullopt;
  InterfaceAddress result{.interface = std::string(interface), .address = address_text(*raw)};
  for (int bit = prefix; bit < kBitsOfByte * raw->count; ++bit)
    raw->bytes[static_cast<std::size_t>(bit / kBitsOfByte)] &=
        static_cast<unsigned char>(~(0x80 >> (bit % kBitsOfByte)));
  result.network = fmt::format("{}/{}", address_text(*raw), prefix);
  return result;
}

std::string with_prefix(const InterfaceAddress& one) {
  return one.address + one.network.substr(one.network.find('/'));
}

// What getifaddrs says of one interface, as "10.77.0.1/16"; empty for what doesn't count.
std::string usable_address(const ifaddrs& one) {
  if (!one.ifa_addr || !one.ifa_netmask || !(one.ifa_flags & IFF_UP) || (one.ifa_flags & IFF_LOOPBACK))
    return "";
  RawAddress address{.family = one.ifa_addr->sa_family}, mask = address;
  const auto take = [&](const void* from, const void* mask_from, int count) {
    address.count = count;
    std::copy_n(static_cast<const unsigned char*>(from), count, address.bytes.begin());
    std::copy_n(static_cast<const unsigned char*>(mask_from), count, mask.bytes.begin());
  };
  if (address.family == AF_INET) {
    take(&reinterpret_cast<const sockaddr_in*>(one.ifa_addr)->sin_addr,
         &reinterpret_cast<const sockaddr_in*>(one.ifa_netmask)->sin_addr, sizeof(in_addr));
  } else if (address.family == AF_INET6) {
    const in6_addr& own = reinterpret_cast<const sockaddr_in6*>(one.ifa_addr)->sin6_addr;
    if (IN6_IS_ADDR_LINKLOCAL(&own)) return "";
    take(&own, &reinterpret_cast<const sockaddr_in6*>(one.ifa_netmask)->sin6_addr, sizeof(in6_addr));
  } else {
    return "";
  }
  int prefix = 0;
  for (const unsigned char byte : mask.bytes) prefix += std::popcount(byte);
  return fmt::format("{}/{}", address_text(address), prefix);
}

bool is_listed(const InterfaceAddress& one, const std::string& list) {
  for (const std::string& word : split(list, ',')) {
    const std::optional<InterfaceAddress> network = interface_address("any", word);
    if (word == one.interface || (network && network->network == one.network)) return true;
  }
  return false;
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

std::string how_to_leave_out(Chooser chooser, const std::string& interfaces) {
  if (chooser == Chooser::mpirun)
    return fmt::format("leave the interface out by mpirun --mca btl_tcp_if_exclude {},lo", interfaces);
  if (chooser == Chooser::open_mpi)
    return fmt::format("leave the interface out by OMPI_MCA_btl_tcp_if_exclude={},lo", interfaces);
  return "name the interface that joins the hosts by FI_TCP_IFACE (MPICH over libfabric) or UCX_NET_DEVICES "
         "(over UCX)";
}

std::string how_to_name(const InterfaceAddress& one, Chooser chooser) {
  if (chooser == Chooser::mpirun) return "mpirun --mca btl_tcp_if_include " + one.network;
  if (chooser == Chooser::open_mpi) return "OMPI_MCA_btl_tcp_if_include=" + one.network;
  const std::string name = printable(one.interface);
  return fmt::format("FI_TCP_IFACE={} (MPICH over libfabric) or UCX_NET_DEVICES={} (over UCX)", name, name);
}

struct AddressHolders {
  std::vector<std::string> hosts;
  std::string interface;  // of the first
};

// Where an address that several hosts have stands: "172.17.0.1 (docker0 on n1 and n2)".
std::string same_addresses_text(const std::map<std::string, AddressHolders>& holders, Chooser chooser) {
  std::string addresses, interfaces;
  for (const auto& [address, held] : holders) {
    const auto& [hosts, interface] = held;
    const std::string name = printable(interface);
    append_part(addresses, fmt::format("{} ({} on {})", address, name, hosts_text(hosts)));
    append_part(interfaces, name, ",");
  }
  return fmt::format(
      "hosts have the same address: {}; messages can go to the wrong host and hang the run: {}, for NCCL by "
      "NCCL_SOCKET_IFNAME=^{},lo",
      addresses, how_to_leave_out(chooser, interfaces), interfaces);
}

// Removes addresses that several hosts have. Returns a warning of them, or nothing.
std::string take_same_addresses(AddressesByHost& chosen, Chooser chooser) {
  std::map<std::string, AddressHolders> holders;
  for (const auto& [host, addresses] : chosen)
    for (const InterfaceAddress& one : addresses)
      holders.try_emplace(one.address, AddressHolders{{}, one.interface}).first->second.hosts.push_back(host);
  std::erase_if(holders, [](const auto& entry) { return entry.second.hosts.size() < 2; });
  for (auto& [host, addresses] : chosen)
    std::erase_if(addresses, [&](const InterfaceAddress& one) { return holders.contains(one.address); });
  return holders.empty() ? "" : same_addresses_text(holders, chooser);
}

// Networks of a host and the interface in each; one network per interface.
using Networks = std::map<std::string, std::string>;

Networks networks_of(const std::vector<InterfaceAddress>& addresses) {
  Networks networks;
  std::set<std::string> interfaces;
  for (const InterfaceAddress& one : addresses)
    if (interfaces.insert(one.interface).second) networks.emplace(one.network, one.interface);
  return networks;
}

Networks in_both(const Networks& first, const Networks& second) {
  Networks both;
  for (const auto& [network, interface] : first)
    if (second.contains(network)) both.emplace(network, interface);
  return both;
}

std::string networks_text(const std::vector<std::string>& hosts, const Networks& shared, Chooser chooser) {
  std::string networks;
  for (const auto& [network, interface] : shared)
    append_part(networks, fmt::format("{} ({})", network, printable(interface)), " and ");
  return fmt::format(
      "{} share {} networks, {}, and Open MPI's TCP spreads messages over all of them, however slow one is: "
      "name one by {}, for NCCL by NCCL_SOCKET_IFNAME={}",
      hosts_text(hosts), shared.size(), networks, how_to_name({.network = shared.begin()->first}, chooser),
      printable(shared.begin()->second));
}

// A warning of the first hosts that share several networks, or nothing.
std::string shared_networks_warning(const AddressesByHost& chosen, Chooser chooser) {
  if (chooser == Chooser::mpich) return "";
  std::map<std::string, Networks> by_host;
  for (const auto& [host, addresses] : chosen) by_host.emplace(host, networks_of(addresses));
  for (auto first = by_host.begin(); first != by_host.end(); ++first)
    for (auto second = std::next(first); second != by_host.end(); ++second) {
      const Networks shared = in_both(first->second, second->second);
      if (shared.size() < 2) continue;
      std::vector<std::string> hosts;
      for (const auto& [host, networks] : by_host)
        if (in_both(shared, networks).size() == shared.size()) hosts.push_back(host);
      return networks_text(hosts, shared, chooser);
    }
  return "";
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
    if (const auto address = interface_address(one->ifa_name, usable_address(*one)))
      result.addresses.push_back(*address);
  return result;
}

std::string to_text(const HostAddresses& host, std::size_t most_bytes) {
  std::string text = host.host;
  for (const InterfaceAddress& one : host.addresses) {
    const std::string word = fmt::format(" {}={}", one.interface, with_prefix(one));
    if (text.size() + word.size() > most_bytes) break;
    text += word;
  }
  return text;
}

HostAddresses host_addresses_of(std::string_view text) {
  const std::vector<std::string> words = split(text, ' ');
  HostAddresses host{.host = words.front()};
  for (const std::string& word : std::span(words).subspan(1)) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string address = equals < word.size() ? word.substr(equals + 1) : "";
    if (const auto one = interface_address(word.substr(0, equals), address)) host.addresses.push_back(*one);
  }
  return host;
}

std::vector<std::string> shared_address_warnings(std::span<const HostAddresses> hosts,
                                                 const InterfaceChoice& choice) {
  AddressesByHost chosen = chosen_addresses(hosts, choice);
  // In this order: shared networks are those that are left.
  std::vector<std::string> warnings{take_same_addresses(chosen, choice.chooser)};
  warnings.push_back(shared_networks_warning(chosen, choice.chooser));
  std::erase(warnings, "");
  return warnings;
}

std::map<std::string, std::string> reachable_addresses(std::span<const HostAddresses> hosts,
                                                       const InterfaceChoice& choice) {
  AddressesByHost chosen = chosen_addresses(hosts, choice);
  take_same_addresses(chosen, choice.chooser);
  std::map<std::string, std::size_t> hosts_in_network;
  for (const auto& [host, addresses] : chosen)
    for (const auto& [network, interface] : networks_of(addresses)) ++hosts_in_network[network];
  std::map<std::string, std::string> reachable;
  for (const auto& [host, addresses] : chosen) {
    if (addresses.empty()) continue;
    const auto shared = std::ranges::find_if(addresses, [&](const InterfaceAddress& one) {
      return hosts_in_network[one.network] == chosen.size();
    });
    reachable[host] = (shared != addresses.end() ? *shared : addresses.front()).address;
  }
  return reachable;
}

std::string late_messages_text(const HostAddresses& own, std::chrono::seconds waited,
                               const InterfaceChoice& choice) {
  std::string addresses;
  for (const InterfaceAddress& one : own.addresses)
    append_part(addresses, fmt::format("{} {}", printable(one.interface), with_prefix(one)));
  std::string text = fmt::format(
      "rank 0 on {} has waited {} s for the first message of another rank, and waits on: another rank hasn't "
      "started, hosts can't reach each other, or two of them have the same address",
      printable(own.host), waited.count());
  if (own.addresses.empty()) return text;
  return text + fmt::format("; this host has {}: name the network that joins all hosts, as by {}", addresses,
                            how_to_name(own.addresses.front(), choice.chooser));
}

}  // namespace plumb
