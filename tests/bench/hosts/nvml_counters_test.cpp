// What is read by structs of NVML's header; a build without it has no such test.
#include <gtest/gtest.h>

#include "base/machine/nvml.h"

namespace plumb {
namespace {

TEST(NvmlCounters, AreThoseThatTheDriverTells) {
  NvmlGpuState gpu = nvml_system(PLUMB_FAKE_NVML)->gpus.front();
  std::erase_if(gpu.counters, [](const auto& one) {
    return one.first.starts_with("rows_") || one.first == "uncorrected_errors";
  });
  EXPECT_EQ(gpu.counters, (std::map<std::string, std::int64_t>{{"nvlinks", 18},
                                                               {"nvlinks_up", 17},
                                                               {"nvlink_replay_errors", 17 * 18 / 2},
                                                               {"recovery_action", 2},
                                                               {"pcie_width", 8},
                                                               {"fabric_unready", 1}}));
  EXPECT_FALSE(nvml_system(PLUMB_FAKE_NVML_WITHOUT_COUNTERS)->gpus.front().counters.contains("nvlinks"))
      << "unknown is not 0";
}

}  // namespace
}  // namespace plumb
