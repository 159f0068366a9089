// A sweep's messages, outputs and rejected inputs.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/launch/fake_programs.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

void expect_refused(const EndedSweep& ended, int code, const std::string& word) {
  EXPECT_EQ(ended.code, code);
  EXPECT_EQ(ended.output, "");
  ASSERT_EQ(ended.messages.size(), 1u);
  EXPECT_NE(ended.messages[0].find(word), std::string::npos) << ended.messages[0];
}

int count(const std::string& text, const std::string& word) {
  int found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(SweepCommand, EndsWithTheTableOfItsLogs) {
  const FakePrograms programs;
  const EndedSweep ended = programs.sweep("out");
  EXPECT_EQ(ended.code, 0);
  EXPECT_NE(ended.output.find("1n1g     3   100.00  100.00     1.00\n"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("1n2g     3   200.00  200.00     2.00\n"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("iterations 2 to 4"), std::string::npos) << ended.output;
  ASSERT_EQ(ended.messages.size(), 2u);
  EXPECT_NE(ended.messages[1].find("6 of 6 runs finished, 0 failed; results in out"), std::string::npos)
      << ended.messages[1];
}

TEST(SweepCommand, AFailureIsTriedAgainAndRecorded) {
  const FakePrograms programs("repetitions = 2\nretries = 2");
  programs.set("fail_1n2g", "xx");
  const EndedSweep ended = programs.sweep("out");
  EXPECT_EQ(ended.code, 0);
  EXPECT_LE(ended.messages.size(), 4u);
  EXPECT_NE(ended.messages[1].find("failed with code 71: out of memory: 5 GiB"), std::string::npos)
      << ended.messages[1];
  const std::string journal = read_text(programs.path("out/journal.jsonl"));
  EXPECT_EQ(count(journal, R"("event":"failed")"), 2);
  EXPECT_EQ(count(journal, R"("event":"done")"), 4);
  EXPECT_EQ(programs.folder().list("out/failed").size(), 2u);
  EXPECT_EQ(programs.folder().list("out/runs").size(), 4u);
}

TEST(SweepCommand, WhatFailsForGoodIsInTheTableAndTheExitCode) {
  const FakePrograms programs("repetitions = 2\nretries = 1");
  programs.set("fail_1n2g", "xxxx");
  const EndedSweep ended = programs.sweep("out");
  EXPECT_EQ(ended.code, 71);
  EXPECT_LE(ended.messages.size(), 4u);
  EXPECT_NE(ended.messages.back().find("2 of 4 runs finished, 2 failed"), std::string::npos);
  EXPECT_NE(ended.output.find("1n1g     2 "), std::string::npos) << ended.output;
  for (const char* run : {"resnet50_b2_fp32_1n2g_1", "resnet50_b2_fp32_1n2g_2"})
    EXPECT_NE(ended.output.find(std::string(run) + ": 2 attempts, code 71, out of memory: 5 GiB wanted"),
              std::string::npos)
        << ended.output;
  // Now memory suffices.
  const EndedSweep resumed = programs.sweep("out", "--resume");
  EXPECT_EQ(resumed.code, 0);
  EXPECT_EQ(resumed.output.find("Failed"), std::string::npos) << resumed.output;
  EXPECT_EQ(programs.folder().list("out/runs").size(), 4u);
}

TEST(SweepCommand, WhatTheLauncherSaysFirstIsTheReasonWhereTheProgramSaysNothing) {
  const FakePrograms programs("repetitions = 1\nretries = 0", "[1]");
  programs.set("mpirun",
               "#!/bin/sh\necho -----\necho 'There are not enough slots'\necho 'Some advice.'\nexit 1\n");
  const EndedSweep ended = programs.sweep("out");
  EXPECT_EQ(ended.code, 70);
  EXPECT_NE(ended.output.find("code 1, There are not enough slots (all of it is in "
                              "out/output/resnet50_b2_fp32_1n1g_1_attempt1.txt)"),
            std::string::npos)
      << ended.output;
}

TEST(SweepCommand, AnInterruptedRunIsNoMeasurementAndIsTriedAgain) {
  const FakePrograms programs("repetitions = 1\nretries = 1");
  programs.set("interrupted", "x");
  const EndedSweep ended = programs.sweep("out");
  EXPECT_EQ(ended.code, 0);
  ASSERT_GE(ended.messages.size(), 2u);
  EXPECT_NE(ended.messages[1].find("failed with code 143: interrupted by SIGTERM after 2 of 4 iterations"),
            std::string::npos)
      << ended.messages[1];
  EXPECT_EQ(programs.folder().list("out/runs").size(), 2u);
  EXPECT_EQ(programs.folder().list("out/failed").size(), 1u);
  for (const std::string& result : programs.results("out"))
    EXPECT_EQ(result.find("interrupted"), std::string::npos) << result;
}

TEST(SweepCommand, AUsageErrorIsNotTriedAgain) {
  const FakePrograms programs("repetitions = 1\nretries = 3", "[1]");
  programs.set("mpirun", "#!/bin/sh\necho 'bench_resnet50: option --bs: no such batch' >&2\nexit 64\n");
  const EndedSweep ended = programs.sweep("out");
  EXPECT_EQ(ended.code, 64);
  EXPECT_NE(ended.output.find("1 attempt, code 64, option --bs: no such batch"), std::string::npos)
      << ended.output;
}

TEST(SweepCommand, ARunThatHangsIsEndedAndFails) {
  const FakePrograms programs("repetitions = 1\nretries = 0\ntimeout_minutes = 0.005", "[1]");
  programs.set("pause", "60");
  const EndedSweep ended = programs.sweep("out");
  EXPECT_EQ(ended.code, 75);
  EXPECT_NE(ended.output.find("took longer than"), std::string::npos) << ended.output;
  EXPECT_EQ(programs.processes("out"), 0);
}

TEST(SweepCommand, ExamplesAreKnownByTheirNames) {
  const ScratchFolder elsewhere;
  const std::string cd = "cd '" + elsewhere.path() + "' && '" PLUMB_PLUMBLINE "' sweep ";
  EXPECT_EQ(std::system((cd + "dlperf_resnet50 --dry-run >plan.txt").c_str()), 0);
  EXPECT_EQ(std::system((cd + "cpu --dry-run >>plan.txt").c_str()), 0);
  EXPECT_EQ(std::system((cd + "dlperf_resnet50_4_hosts --dry-run >hosts.txt").c_str()), 0);
  const std::string over_hosts = read_text(elsewhere / "hosts.txt");
  EXPECT_NE(over_hosts.find("84 runs to do"), std::string::npos)
      << over_hosts;  // 6 cases, 2 precisions, 7 times
  EXPECT_NE(over_hosts.find("--nodes 4 --devices 8 "), std::string::npos) << over_hosts;
  const std::string plan = read_text(elsewhere / "plan.txt");
  EXPECT_NE(plan.find("--fp16"), std::string::npos) << plan;
  EXPECT_NE(std::system((cd + "dlperf --dry-run 2>message.txt").c_str()), 0);
  EXPECT_NE(
      read_text(elsewhere / "message.txt").find("an example: cpu, dlperf_resnet50, dlperf_resnet50_4_hosts"),
      std::string::npos);
}

// Addresses of this host stand for hosts.
TEST(SweepCommand, OverHostsLaunchRunStartsEveryCase) {
  const FakePrograms programs;
  programs.write_hosts_sweep("hosts = '127.0.0.[1-2]'\narguments = ['--oversubscribe']",
                             "nodes = [1, 2]\ndevices_per_node = [1, 2]");
  const EndedSweep dry = programs.sweep("out", "--dry-run");
  EXPECT_EQ(dry.code, 0);
  EXPECT_EQ(count(dry.output, "/launch/run -H '127.0.0.[1-2]' --nodes 2 --devices 2 --with --oversubscribe "),
            2)
      << dry.output;
  const EndedSweep ended = programs.sweep("out");
  EXPECT_EQ(ended.code, 0);
  for (const char* name : {"1n1g", "1n2g", "2n2g"})
    EXPECT_NE(ended.output.find(std::string(name) + "     2 "), std::string::npos) << ended.output;
  EXPECT_NE(read_text(programs.path("out/output/resnet50_b2_fp32_2n2g_1_attempt1.txt"))
                .find("mpirun -np 4 -H 127.0.0.1:2,127.0.0.2:2 "),
            std::string::npos);
  EXPECT_EQ(programs.sweep("out", "--resume").code, 0);
}

TEST(SweepCommand, AfterALostHostSmallerCasesGoOnAndLargerOnesStayOpen) {
  const FakePrograms programs;
  programs.write_hosts_sweep("hosts = '127.0.0.[1-2]'", "cases = ['1n1g', '2n1g']");
  const std::string works = read_text(programs.path("on_hosts/mpirun"));
  const std::string loses =
      "#!/bin/sh\ncase $4 in *,*) echo 'bench_resnet50: a host is lost' >&2; exit 75;; esac\n";
  programs.set("on_hosts/mpirun", loses + works.substr(works.find('\n') + 1));
  const EndedSweep ended = programs.sweep("out", "--on-lost-host skip");
  EXPECT_EQ(ended.code, 75);
  EXPECT_NE(ended.output.find("1n1g     2 "), std::string::npos) << ended.output;
  EXPECT_EQ(count(ended.output, "2n1g"), 1) << ended.output;  // one attempt of one run failed
  EXPECT_NE(ended.output.find("1 attempt, code 75, a host is lost"), std::string::npos) << ended.output;
  EXPECT_EQ(count(read_text(programs.path("messages.txt")), "runs over 2 hosts or more are left out"), 1);
  programs.set("on_hosts/mpirun", works);
  EXPECT_EQ(programs.sweep("out", "--resume --on-lost-host skip").code, 0);
}

TEST(SweepCommand, AFailureOverHostsIsToldByItsOwnWords) {
  const FakePrograms programs;
  programs.write_hosts_sweep("hosts = '127.0.0.1'", "cases = ['1n1g']");
  programs.set("on_hosts/mpirun", "#!/bin/sh\necho 'no daemon on the remote node'\nexit 1\n");
  EXPECT_NE(programs.sweep("out").output.find("code 1, no daemon on the remote node"), std::string::npos);
  programs.write_hosts_sweep("hosts = 'nowhere.invalid'", "cases = ['1n1g']");
  EXPECT_NE(programs.sweep("out2").output.find("code 69, host nowhere.invalid has no address"),
            std::string::npos);
}

TEST(SweepCommand, HostsThatCantRunACaseAreFoundBeforeAnythingIsStarted) {
  const FakePrograms programs;
  const auto refused = [&](const std::string& hosts, const std::string& cases, const std::string& word) {
    programs.write_hosts_sweep(hosts, cases);
    expect_refused(programs.sweep("out"), 65, word);
    EXPECT_FALSE(fs::exists(programs.path("out")));
  };
  refused("hosts = 'n1,n2'", "nodes = [1, 4]\ndevices_per_node = [1]",
          "sweep.toml, line 8, column 9: 4n1g can't be run: option --nodes: 4 is more than the 2 hosts");
  refused("hosts = 'n1,n1'", "cases = ['1n1g']",
          "line 4, column 9: 1n1g can't be run: option -H: host n1 is named twice");
  programs.set("slots", "n1 slots=8\nn2 slots=8\n");
  refused("hostfile = 'slots'", "cases = ['1n16g']",
          "line 8, column 9: 1n16g can't be run: option --devices: host n1 has 8");
  refused("hostfile = 'none'", "cases = ['1n1g']",
          "line 4, column 12: 1n1g can't be run: option --hostfile: ");
  refused("command = 'launch/run'", "cases = ['1n1g']", "no hosts are named");
}

TEST(SweepCommand, ADryRunRefusesMoreRanksThanThisHostHasGpus) {
  const FakePrograms programs;
  const auto dry_run = [&](const std::string& cases) {
    programs.write_hosts_sweep("hosts = 'localhost'", cases);
    programs.set("on_hosts/nvidia-smi",
                 "#!/bin/sh\nfor gpu in 0 1 2 3 4 5 6 7; do echo \"GPU $gpu: H200\"; done\n");
    fs::permissions(programs.path("on_hosts/nvidia-smi"), fs::perms::owner_all);
    return programs.sweep("out", "--dry-run");
  };
  expect_refused(
      dry_run("devices_per_node = [8, 16]"), 65,
      "sweep.toml, line 8, column 20: 1n16g can't be run: option --devices: 16 is more than the 8 GPUs of "
      "this host; give --devices 8, or --share-gpu behind the program");
  for (const char* fits :
       {"devices_per_node = [8]", "devices_per_node = [16]\noptions = { share-gpu = true }",
        "devices_per_node = [16]\noptions = { device = 'cpu' }"})
    EXPECT_EQ(dry_run(fits).code, 0) << fits;
}

TEST(SweepCommand, ADryRunShowsThePlanAndWritesNothing) {
  const FakePrograms programs;
  const EndedSweep dry = programs.sweep("out", "--dry-run");
  EXPECT_EQ(dry.code, 0);
  EXPECT_NE(dry.output.find("6 runs to do, 0 finished; 3 repetitions, seed 0"), std::string::npos)
      << dry.output;
  EXPECT_NE(dry.output.find("time: not known"), std::string::npos) << dry.output;
  EXPECT_EQ(count(dry.output, "mpirun -np "), 6);
  EXPECT_FALSE(fs::exists(programs.path("out")));
  EXPECT_NE(programs.sweep("out", "--dry-run --target h200").output.find("time: at least 0:00:00"),
            std::string::npos);
  ASSERT_EQ(programs.sweep("out").code, 0);
  EXPECT_NE(programs.sweep("out", "--dry-run --resume").output.find("0 runs to do, 6 finished"),
            std::string::npos);
}

TEST(SweepCommand, APipeInPlaceOfTheFileIsRefusedAtOnce) {
  const FakePrograms programs;
  fs::remove(programs.path("sweep.toml"));
  ASSERT_EQ(::mkfifo(programs.path("sweep.toml").c_str(), 0600), 0);
  expect_refused(programs.sweep("out"), 65, "sweep.toml");
}

TEST(SweepCommand, FilesLargerThanAnyAreRefusedUnread) {
  const FakePrograms programs;
  programs.set("out/journal.jsonl", "");
  fs::resize_file(programs.path("out/journal.jsonl"), std::uintmax_t{1} << 40);
  expect_refused(programs.sweep("out", "--resume"), 65, "1099511627776 bytes, more than the 256 MiB");
  fs::resize_file(programs.path("sweep.toml"), std::uintmax_t{1} << 40);
  expect_refused(programs.sweep("other"), 65, "1099511627776 bytes, more than the 1 MiB");
}

TEST(SweepCommand, FoldersThatHoldSomethingElseAreRefused) {
  const FakePrograms programs("repetitions = 1");
  programs.set("other/precious.txt", "keep");
  expect_refused(programs.sweep("other"), 73, "holds no sweep");
  programs.set("file", "");
  expect_refused(programs.sweep("file"), 73, "--out file: cannot create the folder: Not a directory");
  ASSERT_EQ(programs.sweep("out").code, 0);
  expect_refused(programs.sweep("out"), 73, "--resume");
  programs.write_sweep("repetitions = 2", "[1, 2]");
  expect_refused(programs.sweep("out", "--resume"), 73, "another sweep");
  programs.write_sweep("repetitions = 1", "[1, 2]");
  programs.set("bench_resnet50", read_text(programs.path("bench_resnet50")) + "# another build\n");
  expect_refused(programs.sweep("out", "--resume"), 73, "another build");
  programs.set("junk/journal.jsonl", "no journal\n");
  expect_refused(programs.sweep("junk", "--resume"), 65, "line 1");
  EXPECT_EQ(read_text(programs.path("other/precious.txt")), "keep");
}

TEST(SweepCommand, MistakesAreFoundBeforeAnythingIsStarted) {
  const FakePrograms programs;
  expect_refused(programs.sweep("out", "--target h200"), 64, "--dry-run");
  programs.write_sweep("repetitions = 7\nrepetitons = 7", "[1]");
  expect_refused(programs.sweep("out"), 65, "sweep.toml, line 3, column 1");
  programs.write_sweep("repetitions = 7", "[1]\noptions = { lr = -1 }");
  expect_refused(programs.sweep("out"), 65, "sweep.toml, line 10, column 18: option --lr: '-1'");
  programs.write_sweep("repetitions = 7", "[1]\noptions = { lrr = 1 }");
  expect_refused(programs.sweep("out"), 65, "did you mean");
  programs.write_sweep("repetitions = 7", "[1]\noptions = { dry-run = true }");
  expect_refused(programs.sweep("out"), 65, "something else than a run");
  programs.write_sweep("repetitions = 7", "[1]\noptions = { comm = 'nccl' }");
  EXPECT_EQ(programs.sweep("out", "--dry-run").code, 0) << "the programs may have what plumbline lacks";
  programs.write_sweep("repetitions = 7", "[1]");
  fs::remove(programs.path("mpirun"));
  EXPECT_EQ(programs.sweep("out").code, 69);
  fs::remove(programs.path("bench_resnet50"));
  expect_refused(programs.sweep("out2"), 69, "bench_resnet50 is not there");
  fs::remove(programs.path("sweep.toml"));
  expect_refused(programs.sweep("out3"), 65, "can't be read");
}

}  // namespace
}  // namespace plumb
