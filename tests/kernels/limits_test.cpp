#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/machine/machine.h"
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
    return available_bytes(
               {.meminfo = folder_ / "meminfo", .groups = folder_ / "groups", .cgroup = folder_ / "cgroup"}) /
           kMiB;
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

TEST_F(AvailableBytes, AreToldByTheKernelWithoutProc) {
  EXPECT_GT(available_bytes({.meminfo = folder_ / "none", .cgroup = folder_ / "none"}), kMiB);
}

TEST_F(AvailableBytes, AreLimitedByEveryGroupAroundTheProcess) {
  folder_.write("groups", "0::/slice/job\n");
  folder_.write("cgroup/slice/job/memory.max", "max\n");
  folder_.write("cgroup/slice/memory.max", bytes_text(300) + "\n");
  folder_.write("cgroup/slice/memory.current", bytes_text(100) + "\n");
  folder_.write("cgroup/other/memory.max", "0\n");
  EXPECT_DOUBLE_EQ(available_mib(), 200);
  folder_.write("cgroup/slice/job/memory.max", bytes_text(50) + "\n");
  EXPECT_DOUBLE_EQ(available_mib(), 50);
  limit(bytes_text(10), 0, 0);  // a container's own group, mounted as the root
  EXPECT_DOUBLE_EQ(available_mib(), 10);
}

TEST_F(AvailableBytes, AreLimitedByGroupsOfVersion1) {
  folder_.write("groups", "12:cpu,cpuacct:/a\n5:memory:/job\n0::/elsewhere\n");
  folder_.write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  folder_.write("cgroup/memory/job/memory.limit_in_bytes", bytes_text(500) + "\n");
  folder_.write("cgroup/memory/job/memory.usage_in_bytes", bytes_text(400) + "\n");
  folder_.write("cgroup/memory/job/memory.stat",
                "inactive_file 1\ntotal_inactive_file " + bytes_text(250) + "\n");
  EXPECT_DOUBLE_EQ(available_mib(), 350);
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
