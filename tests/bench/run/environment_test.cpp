#include "bench/run/environment.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/build.h"
#include "base/machine/machine.h"

namespace plumb {
namespace {

TEST(Environment, KeepsOnlyVariablesOfTheList) {
  const char* environment[] = {"OMP_NUM_THREADS=4",
                               "SLURM_JOB_ID=12",
                               "GITHUB_TOKEN=ghp_secret",
                               "AWS_SECRET_ACCESS_KEY=a",
                               "OMP_NUM_THREADS_SECRET=b",
                               "OMPI_MCA_orte_token=c",
                               "NCCL_PASSWORD=d",
                               "SLURM_JWT=e",
                               "PATH=/bin",
                               "nonsense",
                               nullptr};
  EXPECT_EQ(recorded_variables(environment),
            (std::map<std::string, std::string>{{"OMP_NUM_THREADS", "4"}, {"SLURM_JOB_ID", "12"}}));
}

TEST(Environment, NamesTheMachineAndTheBuild) {
  const nlohmann::ordered_json json = environment_json({machine_json().dump()});
  EXPECT_FALSE(json.at("host").get<std::string>().empty());
  EXPECT_GT(json.at("memory_bytes").get<long long>(), 1 << 20);
  EXPECT_GE(json.at("cpus").get<int>(), 1);
  EXPECT_FALSE(json.at("affinity").get<std::string>().empty());
  EXPECT_NE(json.at("build").at("libraries").at("MPI").get<std::string>().find("MPI"), std::string::npos);
  EXPECT_NE(version_text("bench_resnet50", engine_build_json()).find("bench_resnet50 0."), std::string::npos);
}

TEST(Environment, WritesCpuListsAsTheKernelDoes) {
  EXPECT_EQ(cpu_list_text({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(cpu_list_text({}), "");
  EXPECT_FALSE(affinity_cpus().empty());
}

int threads(const std::vector<std::string>& placements, int rank, int cpus) {
  return threads_for_this_rank(placements, rank, cpus, 64, 1).threads;
}

TEST(ThreadShare, ARankAloneTakesItsMask) {
  EXPECT_EQ(threads({"a 0-63"}, 0, 64), 64);
  EXPECT_EQ(threads({"a 0-15,32-47", "a 16-31,48-63"}, 1, 32), 32);
}

TEST(ThreadShare, RanksWithOneMaskShareIt) {
  EXPECT_EQ(threads({"a 0-63", "a 0-63"}, 1, 64), 32);
  EXPECT_EQ(threads({"a 0-6", "a 0-6", "a 0-6"}, 0, 7), 3);
  EXPECT_EQ(threads({"a 0-6", "a 0-6", "a 0-6"}, 1, 7), 2);
  EXPECT_EQ(threads({"a 0", "a 0", "a 0"}, 2, 1), 1);
}

TEST(ThreadShare, OtherHostsDoNotCount) {
  EXPECT_EQ(threads({"a 0-63", "b 0-63", "ab 0-63"}, 0, 64), 64);
}

TEST(ThreadShare, SaysThatARankIsBoundToOneCoreOfMany) {
  const ThreadShare share = threads_for_this_rank({"a 0", "a 1"}, 1, 1, 64, 1);
  EXPECT_EQ(share.threads, 1);
  for (const char* word : {"rank 1", "one core", "64 CPUs", "slot:PE=32", "--bind-to none"})
    EXPECT_NE(share.remark.find(word), std::string::npos) << share.remark;
  EXPECT_FALSE(threads_for_this_rank({"a 0,32", "a 1,33"}, 0, 2, 64, 2).remark.empty());
  EXPECT_TRUE(threads_for_this_rank({"a 0", "a 1"}, 0, 1, 2, 1).remark.empty());
  EXPECT_TRUE(threads_for_this_rank({"a 0-63"}, 0, 64, 64, 2).remark.empty());
}

std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* pipe = popen(command.c_str(), "r");
  char part[256];
  while (std::fgets(part, sizeof part, pipe) != nullptr) text += part;
  pclose(pipe);
  return text;
}

TEST(PassiveOpenMp, StartsAnewOnceWithTheSameArguments) {
  EXPECT_EQ(output_of("env -u OMP_WAIT_POLICY " PLUMB_OPENMP_PROBE " --bs 8 'a b' ''"),
            "OMP_WAIT_POLICY=passive [--bs] [8] [a b] []\n");
}

TEST(PassiveOpenMp, KeepsWhatTheUserHasSet) {
  EXPECT_EQ(output_of("OMP_WAIT_POLICY=active " PLUMB_OPENMP_PROBE " x"), "OMP_WAIT_POLICY=active [x]\n");
}

TEST(Environment, NamesEveryOtherHostOnce) {
  const auto host = [](const char* name) {
    auto machine = machine_json();
    machine["host"] = name;
    return machine.dump();
  };
  const auto json = environment_json({host("n1"), host("n1"), host("n2"), host("n3"), host("n2")});
  EXPECT_EQ(json.at("host"), "n1");
  ASSERT_EQ(json.at("other_hosts").size(), 2u);
  EXPECT_EQ(json.at("other_hosts").at(0).at("host"), "n2");
  EXPECT_FALSE(environment_json({host("n1"), host("n1")}).contains("other_hosts"));
}

TEST(Environment, KnowsTheBuildById) {
  const std::string id = build_id();
  EXPECT_GE(id.size(), 16u);
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos) << id;
  EXPECT_NE(build_lines().find("build_id=" + id + "\n"), std::string::npos);
}

TEST(Environment, ReadsTheDriversVersion) {
  EXPECT_EQ(driver_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat Feb 17"),
            "535.161.08");
  EXPECT_EQ(driver_version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82  Release"),
            "580.82");
  EXPECT_EQ(driver_version("NVRM version: unknown "), "");
}

}  // namespace
}  // namespace plumb
