#include "base/machine/host_addresses.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace plumb {
namespace {

std::vector<HostAddresses> hosts(const std::vector<std::string>& texts) {
  std::vector<HostAddresses> all;
  for (const std::string& text : texts) all.push_back(host_addresses_of(text));
  return all;
}

const std::vector<HostAddresses> kWithDocker = hosts(
    {"n1 eth0 10.77.0.1 10.77.0.0/16 docker0 172.17.0.1 172.17.0.0/16",
     "n2 eth0 10.77.0.2 10.77.0.0/16 docker0 172.17.0.1 172.17.0.0/16", "n3 eth0 10.77.0.3 10.77.0.0/16"});
const std::vector<HostAddresses> kTwoNetworks =
    hosts({"n1 eth0 10.77.0.1 10.77.0.0/16 ib0 10.78.0.1 10.78.0.0/24",
           "n2 eth0 10.77.0.2 10.77.0.0/16 ib0 10.78.0.2 10.78.0.0/24",
           "n3 eth0 10.77.0.3 10.77.0.0/16 ib0 10.79.0.3 10.79.0.0/24"});

TEST(HostAddresses, AnAddressOfTwoHostsIsNamedWithItsInterfaceAndTheRemedy) {
  EXPECT_EQ(
      same_address_warning(kWithDocker, {}),
      "hosts have the same address: 172.17.0.1 (docker0 on n1 and n2); messages can go to the wrong "
      "host and hang the run: leave the interface out by OMPI_MCA_btl_tcp_if_exclude=docker0,lo (Open MPI) "
      "and NCCL_SOCKET_IFNAME=^docker0,lo (NCCL), or name the one that joins the hosts by FI_TCP_IFACE or "
      "UCX_NET_DEVICES (MPICH)");
}

TEST(HostAddresses, SeveralSharedAddressesAreNamedInOneSentence) {
  const auto warning = same_address_warning(hosts({"a docker0 172.17.0.1 172.17.0.0/16 virbr0 192.168.122.1 "
                                                   "192.168.122.0/24 eth0 10.0.0.1 10.0.0.0/8",
                                                   "b docker0 172.17.0.1 172.17.0.0/16 virbr0 192.168.122.1 "
                                                   "192.168.122.0/24 eth0 10.0.0.2 10.0.0.0/8"}),
                                            {});
  EXPECT_NE(warning.find("btl_tcp_if_exclude=docker0,virbr0,lo"), std::string::npos) << warning;
}

TEST(HostAddresses, InterfacesThatMpirunLeavesOutAreNoMatter) {
  EXPECT_EQ(same_address_warning(kWithDocker, {.exclude = "docker0,lo"}), "");
  EXPECT_EQ(same_address_warning(kWithDocker, {.exclude = "172.17.0.0/16"}), "");
  EXPECT_EQ(same_address_warning(kWithDocker, {.include = "eth0"}), "");
  EXPECT_NE(same_address_warning(kWithDocker, {.exclude = "lo"}), "");
}

TEST(HostAddresses, RanksOfOneHostHaveTheSame) {
  EXPECT_EQ(
      same_address_warning(hosts({"n1 eth0 10.77.0.1 10.77.0.0/16", "n1 eth0 10.77.0.1 10.77.0.0/16"}), {}),
      "");
}

TEST(HostAddresses, ManyHostsAreCounted) {
  std::vector<std::string> texts;
  for (int i = 1; i <= 9; ++i) texts.push_back(fmt::format("n{} docker0 172.17.0.1 172.17.0.0/16", i));
  EXPECT_NE(same_address_warning(hosts(texts), {}).find("docker0 on n1, n2, n3 and 6 more"),
            std::string::npos);
}

TEST(HostAddresses, SurviveTheRoundTrip) {
  const std::string text = "n1 eth0 10.77.0.1 10.77.0.0/16 ib0 fd00:1::7 fd00:1::/64";
  const HostAddresses host = host_addresses_of(text);
  ASSERT_EQ(host.addresses.size(), 2U);
  EXPECT_EQ(host.addresses[0].interface, "eth0");
  EXPECT_EQ(host.addresses[1].address, "fd00:1::7");
  EXPECT_EQ(host.addresses[1].network, "fd00:1::/64");
  EXPECT_EQ(to_text(host), text);
}

TEST(HostAddresses, ThisHostHasNoLoopbackAmongThem) {
  for (const InterfaceAddress& one : addresses_of_this_host().addresses)
    EXPECT_FALSE(one.address.starts_with("127.") || one.address.starts_with("fe80:")) << one.address;
}

TEST(HostAddresses, FirstMessagesThatDoNotArriveAreToldWithTheRemedy) {
  EXPECT_EQ(
      late_messages_text(host_addresses_of("n1 eth0 10.77.0.1 10.77.0.0/16 docker0 172.17.0.1 172.17.0.0/16"),
                         30),
      "rank 0 on n1 has waited 30 s for the first message of another rank, and waits on: another rank "
      "hasn't started, hosts can't reach each other, or two of them have the same address; choose the "
      "network that joins all hosts, for example with OMPI_MCA_btl_tcp_if_include=10.77.0.0/16 (Open MPI), "
      "FI_TCP_IFACE=eth0 or "
      "UCX_NET_DEVICES=eth0 (MPICH) and NCCL_SOCKET_IFNAME=eth0 (NCCL)");
}

TEST(HostAddresses, OthersReachAHostInTheNetworkThatAllShare) {
  using Reached = std::map<std::string, std::string>;
  const Reached in_first{{"n1", "10.77.0.1"}, {"n2", "10.77.0.2"}, {"n3", "10.77.0.3"}};
  EXPECT_EQ(reachable_addresses(kTwoNetworks, {}), in_first);
  EXPECT_EQ(reachable_addresses(kWithDocker, {}), in_first) << "172.17.0.1 is of two hosts";
  EXPECT_EQ(reachable_addresses(hosts({"n1 ib0 10.78.0.1 10.78.0.0/24 eth0 10.77.0.1 10.77.0.0/16",
                                       "n2 eth0 10.77.0.2 10.77.0.0/16"}),
                                {}),
            (Reached{{"n1", "10.77.0.1"}, {"n2", "10.77.0.2"}}));
  EXPECT_EQ(reachable_addresses(kTwoNetworks, {.exclude = "eth0,lo"}),
            (Reached{{"n1", "10.78.0.1"}, {"n2", "10.78.0.2"}, {"n3", "10.79.0.3"}}))
      << "no network is of all: each host's first address";
  EXPECT_EQ(reachable_addresses(
                hosts({"n1 docker0 172.17.0.1 172.17.0.0/16", "n2 docker0 172.17.0.1 172.17.0.0/16"}), {}),
            Reached{})
      << "nobody knows whom it would reach";
}

}  // namespace
}  // namespace plumb
