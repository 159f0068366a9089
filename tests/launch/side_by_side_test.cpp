// Many commands at once: their ends, their number at a time, limits.
#include "base/process/side_by_side.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

CommandWords shell(const std::string& script) {
  return {"sh", "-c", script};
}

TEST(SideBySide, EveryCommandsEndIsKeptInItsPlace) {
  const SignalWatch signals;
  const auto ends = run_side_by_side(
      {shell("echo one; exit 3"), shell("echo two >&2"), {"/no/such/program"}, shell("kill -9 $$")}, {},
      signals);
  ASSERT_EQ(ends.size(), 4u);
  EXPECT_EQ(ends[0].code, 3);
  EXPECT_EQ(ends[0].output, "one\n");
  EXPECT_EQ(ends[1].code, 0);
  EXPECT_EQ(ends[1].errors, "two\n");
  EXPECT_EQ(ends[2].code, 127);
  EXPECT_EQ(ends[2].errors, "/no/such/program: No such file or directory");
  EXPECT_EQ(ends[3].code, 128 + SIGKILL);
}

TEST(SideBySide, NoMoreRunAtOnceThanAllowed) {
  const ScratchFolder folder;
  // Each command counts those that run while it does.
  const std::string script = fmt::format("cd {}; touch $$; ls | wc -l; sleep 0.05; rm $$", folder.path());
  const SignalWatch signals;
  std::vector<std::size_t> told;
  const auto ends = run_side_by_side(
      std::vector<CommandWords>(20, shell(script)),
      {.most_at_once = 3, .told = [&](std::size_t ended) { told.push_back(ended); }}, signals);
  for (const CommandEnd& end : ends) EXPECT_LE(std::stoi(end.output), 3);
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_EQ(told.back(), 20u);
}

TEST(SideBySide, ACommandThatHangsIsEndedWithItsChildren) {
  const SignalWatch signals;
  const auto ends =
      run_side_by_side({shell("trap '' TERM; sleep 1000 & echo $!; wait; sleep 1000"), shell("echo well")},
                       {.timeout_seconds = 3}, signals);
  EXPECT_TRUE(ends[0].timed_out);
  EXPECT_FALSE(ends[1].timed_out);
  EXPECT_EQ(ends[1].output, "well\n");
  const pid_t child = std::stoi(ends[0].output);
  for (int i = 0; i < 500 && ::kill(child, 0) == 0; ++i)
    if (std::string state;
        std::ifstream("/proc/" + std::to_string(child) + "/stat") >> state >> state >> state, state == "Z")
      break;
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::string state;
  std::ifstream("/proc/" + std::to_string(child) + "/stat") >> state >> state >> state;
  EXPECT_TRUE(state.empty() || state == "Z") << state;
}

TEST(SideBySide, AProgramThatEndsIsNotWaitedForWhoeverHoldsItsOutput) {
  const SignalWatch signals;
  const auto ends = run_side_by_side({shell("sleep 1000 & echo done")}, {.timeout_seconds = 100}, signals);
  EXPECT_FALSE(ends[0].timed_out);
  EXPECT_EQ(ends[0].output.substr(0, 5), "done\n");
}

TEST(SideBySide, ASignalEndsAllCommands) {
  const SignalWatch signals;
  std::thread sender([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::kill(::getpid(), SIGTERM);
  });
  try {
    run_side_by_side({shell("sleep 1000")}, {.timeout_seconds = 1000}, signals);
    ADD_FAILURE() << "it returned";
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code()), 128 + SIGTERM);
  }
  sender.join();
}

}  // namespace
}  // namespace plumb
