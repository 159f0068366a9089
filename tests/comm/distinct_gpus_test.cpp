#include "comm/distinct_gpus.h"

#include <gtest/gtest.h>

namespace plumb {
namespace {

TEST(DistinctGpus, NeitherCpusNorOneNumberOnTwoHostsAreShared) {
  for (const auto& gpus : {std::vector<RankDevice>{},
                           {{"node1", "GPU-a"}, {"node1", "GPU-b"}, {"node2", "GPU-c"}},
                           {{"node1", ""}, {"node1", ""}},
                           {{"node1", "GPU-a"}, {"node2", "GPU-a"}}})
    EXPECT_FALSE(shared_gpu(gpus));
}

TEST(DistinctGpus, NamesBothRanksTheGpuTheCountsAndTheRemedy) {
  EXPECT_EQ(shared_gpu({{"node1", "GPU-a"},
                        {"node2", "GPU-d"},
                        {"node1", "GPU-b"},
                        {"node1", "GPU-a"},
                        {"node1", "GPU-b"}}),
            "rank 0 and rank 3 on node1 both use GPU-a; start at most 2 ranks there, set "
            "CUDA_VISIBLE_DEVICES for each, or pass --share-gpu");
}

TEST(DistinctGpus, FindsASharedGpuOnTheLastHost) {
  const auto shared = shared_gpu({{"node1", "GPU-a"}, {"node2", "GPU-b"}, {"node2", "GPU-b"}});
  ASSERT_TRUE(shared);
  EXPECT_NE(shared->find("rank 1 and rank 2 on node2 both use GPU-b"), std::string::npos) << *shared;
}

TEST(DistinctGpus, CountsTheRanksOfTheFullestGpu) {
  EXPECT_EQ(most_ranks_per_gpu({}), 1);
  EXPECT_EQ(most_ranks_per_gpu({{"node1", ""}, {"node1", ""}}), 1);
  EXPECT_EQ(most_ranks_per_gpu({{"node1", "GPU-a"}, {"node2", "GPU-a"}}), 1);
  EXPECT_EQ(most_ranks_per_gpu({{"node1", "GPU-a"},
                                {"node2", "GPU-b"},
                                {"node1", "GPU-a"},
                                {"node2", "GPU-b"},
                                {"node2", "GPU-b"}}),
            3);
}

}  // namespace
}  // namespace plumb
