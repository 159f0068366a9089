// Sweeps interrupted in every way.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "tests/launch/fake_programs.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

std::set<std::string> results_of_a_whole_sweep(const FakePrograms& programs) {
  const EndedSweep whole = programs.sweep("whole");
  EXPECT_EQ(whole.code, 0) << whole.messages.back();
  return programs.results("whole");
}

void expect_nothing_under_way(const FakePrograms& programs, const std::string& out) {
  for (int i = 0; i < 1000 && programs.processes() > 0; ++i) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(programs.processes(), 0);
  EXPECT_FALSE(fs::exists(programs.path(out + "/work")));
}

// Waits until `file` exists.
void await(const std::string& file) {
  for (int i = 0; i < 2000 && !fs::exists(file); ++i) std::this_thread::sleep_for(milliseconds(5));
  ASSERT_TRUE(fs::exists(file)) << file;
}

TEST(SweepKill, KilledAtAnyMomentAndResumedGivesTheSameResults) {
  const FakePrograms programs;
  const std::set<std::string> whole = results_of_a_whole_sweep(programs);
  ASSERT_EQ(whole.size(), 12u);  // 6 logs and 6 results
  programs.set("pause", "0.03");
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 engine(seed);
  for (int kill = 0; kill < 12; ++kill) {
    const pid_t sweep = programs.start("killed", "--resume");
    std::this_thread::sleep_for(milliseconds(engine() % 250));
    ::kill(sweep, SIGKILL);
    ASSERT_EQ(::waitpid(sweep, nullptr, 0), sweep);
  }
  const EndedSweep last = programs.sweep("killed", "--resume");
  EXPECT_EQ(last.code, 0) << last.messages.back();
  EXPECT_EQ(programs.results("killed"), whole);
  expect_nothing_under_way(programs, "killed");
}

TEST(SweepKill, AnInterruptEndsTheProgramsAndTheSweepGoesOnLater) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    SCOPED_TRACE(signal);
    const FakePrograms programs("repetitions = 1");
    programs.set("pause", "60");
    const pid_t sweep = programs.start("out");
    await(programs.path("out/logs/resnet50_b2_fp32"));
    ::kill(sweep, signal);
    const EndedSweep ended = programs.wait(sweep);
    EXPECT_EQ(ended.code, 128 + signal);
    EXPECT_LE(ended.messages.size(), 4u);
    EXPECT_NE(ended.messages.back().find("--resume"), std::string::npos) << ended.messages.back();
    expect_nothing_under_way(programs, "out");
    fs::remove(programs.path("pause"));
    EXPECT_EQ(programs.sweep("out", "--resume").code, 0);
    EXPECT_EQ(programs.results("out"), results_of_a_whole_sweep(programs));
  }
}

TEST(SweepKill, AFolderInUseIsRefusedUntilItsSweepIsDead) {
  const FakePrograms programs("repetitions = 1");
  programs.set("pause", "60");
  const pid_t first = programs.start("out");
  await(programs.path("out/logs/resnet50_b2_fp32"));
  const EndedSweep second = programs.sweep("out", "--resume");
  EXPECT_EQ(second.code, 73);
  EXPECT_NE(second.messages.back().find("still running"), std::string::npos) << second.messages.back();
  EXPECT_GE(programs.processes(), 3);
  ::kill(first, SIGKILL);
  ASSERT_EQ(::waitpid(first, nullptr, 0), first);
  fs::remove(programs.path("pause"));
  EXPECT_EQ(programs.sweep("out", "--resume").code, 0);
  expect_nothing_under_way(programs, "out");
}

TEST(SweepKill, AFinishedSweepIsNotRunAgain) {
  const FakePrograms programs;
  const std::set<std::string> whole = results_of_a_whole_sweep(programs);
  programs.set("fail_1n1g", "xxxxxxxxxxxxxxxx");
  programs.set("fail_1n2g", "xxxxxxxxxxxxxxxx");
  EXPECT_EQ(programs.sweep("whole", "--resume").code, 0);
  EXPECT_EQ(programs.results("whole"), whole);
}

TEST(SweepKill, AResultThatIsGoneIsMeasuredAgain) {
  const FakePrograms programs;
  const std::set<std::string> whole = results_of_a_whole_sweep(programs);
  fs::remove(programs.path("whole/logs/resnet50_b2_fp32/1n2g/resnet50_b2_fp32_2.log"));
  fs::remove_all(programs.path("whole/runs/resnet50_b2_fp32_1n1g_3"));
  const EndedSweep resumed = programs.sweep("whole", "--resume");
  EXPECT_EQ(resumed.code, 0);
  EXPECT_NE(resumed.messages[1].find("are not complete"), std::string::npos) << resumed.messages[1];
  EXPECT_EQ(programs.results("whole"), whole);
}

}  // namespace
}  // namespace plumb
