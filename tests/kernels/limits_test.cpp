#include "kernels/cpu/limits.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/scratch_folder.h"

namespace plumb::cpu {
namespace {

constexpr double kMiB = 1 << 20;

// A host with 1000 MiB available, whose cgroup files the tests write.
class AvailableBytes : public ::testing::Test {
 protected:
  AvailableBytes() {
    folder_.write("meminfo",
                  "MemTotal:        4096000 kB\nMemFree:          100000 kB\nMemAvailable:    1024000 kB\n");
  }
  void limit(const std::string& max, double used_mib, double cached_mib) const {
    folder_.write("cgroup/memory.max", max + "\n");
    folder_.write("cgroup/memory.current", bytes_text(used_mib) + "\n");
    folder_.write("cgroup/memory.stat", "anon 4096\nfile 999999999\nactive_file 12345\ninactive_file " +
                                            bytes_text(cached_mib) + "\nunevictable 0\n");
  }
  double available_mib() const {
    return available_bytes({.meminfo = folder_ / "meminfo", .cgroup = folder_ / "cgroup"}) / kMiB;
  }
  static std::string bytes_text(double mib) { return std::to_string(static_cast<long long>(mib * kMiB)); }

  const ScratchFolder folder_;
};

TEST_F(AvailableBytes, AreMemAvailableWithoutALimit) {
  EXPECT_DOUBLE_EQ(available_mib(), 1000) << "no control group";
  limit("max", 800, 100);
  EXPECT_DOUBLE_EQ(available_mib(), 1000) << "a control group without a limit";
}

TEST_F(AvailableBytes, CountCachedFilesOfALimitedGroupAsFree) {
  limit(bytes_text(500), 400, 0);
  EXPECT_DOUBLE_EQ(available_mib(), 100);
  limit(bytes_text(500), 400, 250);
  EXPECT_DOUBLE_EQ(available_mib(), 350);
}

TEST_F(AvailableBytes, AreMemAvailableWhereTheLimitLeavesMore) {
  limit(bytes_text(3000), 400, 250);
  EXPECT_DOUBLE_EQ(available_mib(), 1000);
}

TEST_F(AvailableBytes, StayWithinZeroAndTheLimit) {
  limit(bytes_text(500), 600, 0);
  EXPECT_DOUBLE_EQ(available_mib(), 0) << "the limit was lowered below what is used";
  limit(bytes_text(500), 100, 200);
  EXPECT_DOUBLE_EQ(available_mib(), 500) << "the two files are read one after the other";
}

TEST_F(AvailableBytes, AreNoneWhereTheHostDoesNotTell) {
  EXPECT_DOUBLE_EQ(available_bytes({.meminfo = folder_ / "none", .cgroup = folder_ / "none"}), 0);
}

TEST(ProcValue, StandsAfterKeyAndColon) {
  const ScratchFolder folder;
  const std::string file = folder.write("cpuinfo", "processor\t: 0\nmodel name\t: A CPU: fast\nempty\t:\n");
  EXPECT_EQ(proc_value(file, "model name"), "A CPU: fast");
  EXPECT_EQ(proc_value(file, "empty"), "");
  EXPECT_EQ(proc_value(file, "cpu MHz"), "");
}

TEST(AffinityCpus, AreAscendingAndCounted) {
  const std::vector<int> cpus = affinity_cpus();
  EXPECT_TRUE(std::is_sorted(cpus.begin(), cpus.end()));
  EXPECT_EQ(available_cpus(), static_cast<int>(cpus.size()));
}

}  // namespace
}  // namespace plumb::cpu
