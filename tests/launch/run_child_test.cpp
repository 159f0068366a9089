#include <gtest/gtest.h>

#include <csignal>

#include "base/process/side_by_side.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

ChildEnd run_shell(const ScratchFolder& folder, const std::string& script) {
  const SignalWatch signals;
  return run_child({"sh", "-c", script}, folder / "output", signals, 0, [] {});
}

TEST(ChildProcess, EndsWithItsCodeOrSignal) {
  const ScratchFolder folder;
  EXPECT_EQ(run_shell(folder, "exit 7").code, 7);
  EXPECT_EQ(run_shell(folder, "kill -KILL $$").code, 128 + SIGKILL);
  EXPECT_EQ(run_shell(folder, "exit 0").signal, 0);
}

// As Slurm preempts a job: all of its processes get the signal, and the child may end first.
TEST(ChildProcess, ASignalForTheChildAndForUsIsOurs) {
  const ScratchFolder folder;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const ChildEnd end = run_shell(folder, "kill -TERM $PPID; kill -TERM $$");
    EXPECT_EQ(end.signal, SIGTERM);
    EXPECT_EQ(end.code, 128 + SIGTERM);
  }
}

// The next run is told, so that what has ended well is kept.
TEST(ChildProcess, ASignalDuringTheEndOfAGoodRunIsSeenByTheNext) {
  const ScratchFolder folder;
  const SignalWatch signals;
  const auto run = [&](const std::string& script) {
    return run_child({"sh", "-c", script}, folder / "output", signals, 0, [] {});
  };
  const ChildEnd first = run("trap '' TERM; kill -TERM $PPID; exit 0");
  const ChildEnd second = run("exit 0");
  EXPECT_EQ((first.signal == SIGTERM) + (second.signal == SIGTERM), 1);
  EXPECT_EQ(first.code, 0);
}

}  // namespace
}  // namespace plumb
