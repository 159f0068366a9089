#include "comm/watchdog/launcher.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace plumb {
namespace {

pid_t start(std::vector<std::string> environment, int signal) {
  std::vector<char*> variables;
  for (std::string& one : environment) variables.push_back(one.data());
  variables.push_back(nullptr);
  std::string shell = "sh", option = "-c", script = "kill -" + std::to_string(signal) + " $$";
  char* const words[] = {shell.data(), option.data(), script.data(), nullptr};
  pid_t pid = 0;
  if (::posix_spawn(&pid, "/bin/sh", nullptr, nullptr, words, variables.data()) != 0) return -1;
  siginfo_t seen{};
  ::waitid(P_PID, static_cast<id_t>(pid), &seen, WSTOPPED | WEXITED | WNOWAIT);
  return pid;
}

TEST(RanksStartedByALauncher, AreThoseThatHaveNotEnded) {
  const std::vector<pid_t> pids = {
      start({"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=3"}, SIGSTOP),
      start({"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=3"}, SIGKILL),
      start({"PMIX_RANK=2", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=3"}, SIGSTOP), start({}, SIGSTOP)};
  const std::vector<StartedRank> ranks = ranks_started_by({.pid = ::getpid()});
  for (const pid_t pid : pids) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].rank, 1);
  EXPECT_EQ(ranks[0].pid, pids[0]);
  EXPECT_TRUE(ranks[0].stopped);
  EXPECT_EQ(ranks[1].rank, 2);
  EXPECT_EQ(ranks[1].pid, pids[2]);
}

}  // namespace
}  // namespace plumb
