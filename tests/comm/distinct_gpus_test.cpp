#include "comm/distinct_gpus.h"

#include <gtest/gtest.h>

namespace plumb {
namespace {

TEST(DistinctGpus, NeitherCpusNorOneNumberOnTwoHostsAreShared) {
  for (const auto& gpus : {std::vector<RankDevice>{},
                           {{"node1", "GPU-a"}, {"node1", "GPU-b"}, {"node2", "GPU-c"}},
                           {{"node1", ""}, {"node1", ""}},
                           {{"node1", "GPU-a"}, {"node2", "GPU-a"}}})
    EXPECT_EQ(gpu_use(gpus).shared, "");
}

TEST(DistinctGpus, NamesBothRanksTheGpuAndTheRemedy) {
  EXPECT_EQ(gpu_use({{"node1", "GPU-a"},
                     {"node2", "GPU-d"},
                     {"node1", "GPU-b"},
                     {"node1", "GPU-a"},
                     {"node1", "GPU-b"}})
                .shared,
            "rank 0 and rank 3 on node1 both use GPU-a; start fewer ranks there, set "
            "CUDA_VISIBLE_DEVICES for each, or pass --share-gpu");
}

TEST(DistinctGpus, CountsTheRanksOfTheFullestGpu) {
  EXPECT_EQ(gpu_use({}).most_ranks, 1);
  EXPECT_EQ(gpu_use({{"node1", ""}, {"node1", ""}}).most_ranks, 1);
  EXPECT_EQ(gpu_use({{"node1", "GPU-a"}, {"node2", "GPU-a"}}).most_ranks, 1);
  EXPECT_EQ(gpu_use({{"node1", "GPU-a"},
                     {"node2", "GPU-b"},
                     {"node1", "GPU-a"},
                     {"node2", "GPU-b"},
                     {"node2", "GPU-b"}})
                .most_ranks,
            3);
}

}  // namespace
}  // namespace plumb
