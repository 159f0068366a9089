#include <gtest/gtest.h>

#include <map>

#include "comm/distinct_gpus.h"

namespace plumb {
namespace {

std::map<std::string, std::string> variables(int rank, int hosts, int version) {
  const auto list = nccl_variables_on_shared_gpu(rank, hosts, version);
  std::map<std::string, std::string> by_name(list.begin(), list.end());
  EXPECT_EQ(by_name.size(), list.size()) << "a variable is there twice";
  return by_name;
}

TEST(NcclOnSharedGpu, GivesEachRankItsOwnHostIdBefore2_30) {
  const auto first = variables(0, 1, 22909), second = variables(1, 1, 22909);
  EXPECT_NE(first.at("NCCL_HOSTID"), second.at("NCCL_HOSTID"));
  EXPECT_FALSE(first.contains("NCCL_MULTI_RANK_GPU_ENABLE"));
}

TEST(NcclOnSharedGpu, UsesNcclsSwitchFrom2_30On) {
  const auto all = variables(1, 1, 23000);
  EXPECT_EQ(all.at("NCCL_MULTI_RANK_GPU_ENABLE"), "1");
  EXPECT_FALSE(all.contains("NCCL_HOSTID"));
}

TEST(NcclOnSharedGpu, KeepsMessagesOfOneHostOnItsLoopbackInterface) {
  EXPECT_EQ(variables(0, 1, 22809).at("NCCL_SOCKET_IFNAME"), "lo");
  EXPECT_FALSE(variables(0, 2, 22809).contains("NCCL_SOCKET_IFNAME"));
}

TEST(NcclOnSharedGpu, ChoosesSocketsAndFewChannels) {
  for (const int version : {22809, 23003}) {
    const auto all = variables(0, 1, version);
    EXPECT_EQ(all.at("NCCL_NET"), "Socket");
    EXPECT_EQ(all.at("NCCL_MAX_NCHANNELS"), "2");
    for (const char* off : {"NCCL_MNNVL_ENABLE", "NCCL_NVLS_ENABLE", "NCCL_CUMEM_ENABLE", "NCCL_RAS_ENABLE"})
      EXPECT_EQ(all.at(off), "0") << off;
  }
}

}  // namespace
}  // namespace plumb
