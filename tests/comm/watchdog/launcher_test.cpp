#include "comm/watchdog/launcher.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/scratch_folder.h"

namespace plumb {
namespace {

pid_t start_shell(std::string script, std::vector<std::string> environment) {
  std::vector<char*> variables;
  for (std::string& one : environment) variables.push_back(one.data());
  variables.push_back(nullptr);
  std::string shell = "sh", option = "-c";
  char* const words[] = {shell.data(), option.data(), script.data(), nullptr};
  pid_t pid = 0;
  return ::posix_spawn(&pid, "/bin/sh", nullptr, nullptr, words, variables.data()) == 0 ? pid : -1;
}

pid_t start(const std::vector<std::string>& environment, int signal) {
  const pid_t pid = start_shell("kill -" + std::to_string(signal) + " $$", environment);
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

// A program of this one's name stands for the rank's.
TEST(RanksStartedByALauncher, AreKnownBehindAShell) {
  const ScratchFolder scratch;
  const std::string program = scratch.path() + "/" + program_invocation_short_name;
  std::filesystem::create_symlink("/bin/sleep", program);
  const pid_t shell =
      start_shell(program + " 60 & wait", {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2"});
  std::vector<StartedRank> ranks;
  for (int looks = 0; looks < 1000 && (ranks.empty() || ranks.front().pid == shell); ++looks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ranks = ranks_started_by({.pid = ::getpid()});
  }
  ASSERT_EQ(ranks.size(), 1u);
  EXPECT_EQ(ranks.front().rank, 1);
  EXPECT_NE(ranks.front().pid, shell) << "the shell was taken for the rank";
  ::kill(ranks.front().pid, SIGKILL);
  ::waitpid(shell, nullptr, 0);
}

}  // namespace
}  // namespace plumb
