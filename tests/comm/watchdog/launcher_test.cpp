#include "comm/watchdog/launcher.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/scratch_folder.h"

namespace plumb {
namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& one : texts) pointers.push_back(one.data());
  pointers.push_back(nullptr);
  return pointers;
}

pid_t start(const std::string& program, std::vector<std::string> words, std::vector<std::string> variables) {
  pid_t pid = 0;
  const int failure = ::posix_spawn(&pid, program.c_str(), nullptr, nullptr, pointers_to(words).data(),
                                    pointers_to(variables).data());
  return failure == 0 ? pid : -1;
}

pid_t start_shell(const std::string& script, const std::vector<std::string>& environment) {
  return start("/bin/sh", {"sh", "-c", script}, environment);
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

// The nearest launcher of a process that a shell by this name starts.
Launcher launcher_by_name(const std::string& name, const std::vector<std::string>& arguments) {
  const ScratchFolder scratch;
  const std::string program = scratch.path() + "/" + name, started = scratch.path() + "/started";
  std::filesystem::create_symlink("/bin/sh", program);
  std::vector<std::string> words = {name, "-c", "/bin/sleep 60 & echo $! > " + started + "; wait"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const pid_t shell = start(program, words, {});
  pid_t child = 0;
  for (int looks = 0; looks < 1000 && child == 0; ++looks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::ifstream(started) >> child;
  }
  const std::optional<Launcher> launcher = launcher_of(child);
  EXPECT_TRUE(launcher && launcher->pid == shell) << name;
  const Launcher found = launcher.value_or(Launcher{});
  end_launcher_later(found, std::chrono::seconds(0));
  siginfo_t seen{};
  const bool ends = !found.serves_jobs;
  if (ends) ::waitid(P_PID, static_cast<id_t>(shell), &seen, WEXITED | WNOWAIT);
  if (!ends) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(found.is_gone(), ends) << name;
  ::kill(child, SIGKILL);
  ::waitpid(shell, nullptr, 0);
  return found;
}

TEST(Launcher, IsLeftAloneWhereItServesOtherJobs) {
  const std::string option = "ess_base_nspace";
  EXPECT_FALSE(launcher_by_name("orted", {}).serves_jobs);
  EXPECT_FALSE(launcher_by_name("prted", {"--prtemca", option, "prterun-n1-4711@0"}).serves_jobs);
  EXPECT_TRUE(launcher_by_name("prted", {"--prtemca", option, "prte-n1-4711@0"}).serves_jobs);
  EXPECT_TRUE(launcher_by_name("prte", {"--daemonize"}).serves_jobs);
}

}  // namespace
}  // namespace plumb
