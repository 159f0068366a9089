// R6: a full disk is reported, and everything written before still parses.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "tests/faults/started_program.h"

namespace plumb {
namespace {

// Runs `command` with a file system of `bytes` at "logs", unmounted afterwards; its files are copied to
// "kept".
std::string on_small_disk(const std::string& bytes, const std::string& command) {
  return "mkdir logs && " + with_own_mounts("mount -t tmpfs -o size=" + bytes + " none logs && " + command +
                                            "; code=\\$?; cp -r logs/. kept; exit \\$code");
}

TEST(FullDisk, EndsTheRunAndKeepsEveryWholeLine) {
  if (!can_mount()) GTEST_SKIP() << "mounting is not permitted here";
  const Place place;
  // One page for the case's name, one for lines.
  const Ended ended = place.run(on_small_disk("8k", place.bench(kOne + "--iters 200")));
  EXPECT_EQ(ended.exit_code, kIoError) << ended.launcher_messages;
  ASSERT_FALSE(ended.lines.empty());
  EXPECT_LE(ended.lines.size(), 4u);
  EXPECT_NE(ended.lines.back().find("space"), std::string::npos) << ended.lines.back();
  EXPECT_NE(ended.lines.back().find("--log-dir"), std::string::npos) << ended.lines.back();
  expect_no_score(place, "logs/1n1g/y1_b1_fp32_1.log.part");
  const std::vector<std::string> parts = place.contents_ending_in(".log.part");
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_GE(expect_whole_lines(place.file(parts.front())), 10);
}

TEST(FullDisk, OnRank0EndsTheOtherRankToo) {
  if (!can_mount()) GTEST_SKIP() << "mounting is not permitted here";
  const Place place;
  StartedProgram program =
      place.start(on_small_disk("4k", Place::mpirun(2, place.bench(kSmall + "--iters 200"))));
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, kIoError) << ended.launcher_messages;
  ASSERT_FALSE(ended.lines.empty());
  EXPECT_NE(ended.lines.back().find("rank 0"), std::string::npos) << ended.lines.back();
  EXPECT_TRUE(program.processes().empty());
  expect_no_score(place, ".part at iteration 0");
  EXPECT_TRUE(place.contents_ending_in(".log.part").empty()) << "an empty log is left";
}

// Open MPI's files don't fit. Its mpirun may lock up then.
TEST(FullDisk, AsTmpdirEndsTheStartWithOneSentence) {
  if (!can_mount()) GTEST_SKIP() << "mounting is not permitted here";
  const Place place;
  StartedProgram program =
      place.start(on_small_disk("1m", "TMPDIR=\\$PWD/logs " + Place::mpirun(2, place.bench(kSmall))));
  expect_one_sentence(program.wait(), kIoError, {"TMPDIR ", " bytes are free", "make room"});
  EXPECT_TRUE(program.processes().empty());
}

// Open MPI's folders there are the same for all ranks without a launcher: those that end remove them while
// others start.
TEST(FullDisk, AsTmpdirDoesNotConcernARankWithoutALauncher) {
  const Place place;
  write_text(place.file("tmp"), "not a folder");
  const Ended ended = place.run(place.bench(kOne + "--iters 2"), "TMPDIR=" + place.file("tmp"));
  EXPECT_EQ(ended.exit_code, 0) << testing::PrintToString(ended.lines);
}

// No space at all: found before anything is computed.
TEST(FullDisk, BeforeTheFirstIterationNothingIsLeft) {
  if (!can_mount()) GTEST_SKIP() << "mounting is not permitted here";
  const Place place;
  const Ended ended = place.run(on_small_disk(
      "4k", "sh -c 'head -c 4096 /dev/zero >logs/filler' && " + place.bench(kSmall + "--iters 4")));
  expect_one_sentence(ended, 73, {"logs/1n1g", "No space left", "--log-dir"});
  EXPECT_TRUE(place.contents_ending_in(".json").empty());
}

TEST(FullDisk, AsStandardOutputEndsTheBenchsAnswersWithOneSentence) {
  for (const char* answer : {"--help", "--version", "--version --json", "--list-targets",
                             "--list-targets --json", "--completions zsh", "--dry-run", "--dry-run --json"}) {
    const Place place;
    expect_one_sentence(place.run(place.bench(answer) + " >/dev/full"), kIoError,
                        {"standard output", "No space left", "make room"});
  }
}

struct PlumblineOutput {
  std::string name, arguments;
};
void PrintTo(const PlumblineOutput& output, std::ostream* stream) {
  *stream << output.arguments;
}

class FullDiskPlumbline : public testing::TestWithParam<PlumblineOutput> {};

TEST_P(FullDiskPlumbline, EndsWithOneSentence) {
  const Place place;
  write_example_runs(place, "old", 100);
  write_example_runs(place, "new", 101);
  const std::string& arguments = GetParam().arguments;
  if (arguments.find(" logs/") == std::string::npos) {
    expect_one_sentence(place.run(place.plumbline(arguments) + " >/dev/full"), kIoError,
                        {"standard output", "No space left", "make room"}, "plumbline");
    return;
  }
  if (!can_mount()) GTEST_SKIP() << "mounting is not permitted here";
  const Ended ended = place.run(
      on_small_disk("4k", "sh -c 'head -c 4096 /dev/zero >logs/filler' && " + place.plumbline(arguments)));
  expect_one_sentence(ended, kIoError, {" logs/", ": cannot write the file: No space left", "make room"},
                      "plumbline");
  for (const std::string& name : place.contents())
    EXPECT_TRUE(!name.starts_with("kept/") || name == "kept/filler") << name << " is left";
  EXPECT_EQ(read_text(place.file("kept/filler")), std::string(4096, '\0'));
}

const std::vector<PlumblineOutput> kPlumblineOutputs = {
    {"Help", "--help"},
    {"Version", "--version"},
    {"Completions", "--completions bash"},
    {"Analyze", "analyze " PLUMB_TEST_DATA "/dialects/oneflow_cnn"},
    {"AnalyzeJson", "analyze " PLUMB_TEST_DATA "/dialects/oneflow_cnn --json"},
    {"Compare", "compare new old"},
    {"CompareJson", "compare new old --json"},
    {"Published", "published --format csv"},
    {"SweepDryRun", "sweep cpu --dry-run"},
    {"Gate", "gate new --baseline old"},
    {"GateMarkdown", "gate new --baseline old --markdown"},
    {"GateJson", "gate new --baseline old --json"},
    {"GateJunit", "gate new --baseline old --junit -"},
    {"GateJunitFile", "gate new --baseline old --junit logs/gate.xml"},
    {"Report", "report new -o -"},
    {"ReportMarkdown", "report new --format markdown -o -"},
    {"ReportFile", "report new -o logs/report.html"},
    {"History", "report --history old -o -"},
    {"HistoryJson", "report --history old --format json -o -"},
    {"HistoryFile", "report --history old -o logs/history.html"},
    {"ReportInThePlaceOfAnother", "report new --overwrite -o logs/filler"},
    {"Prometheus", "export new --format prometheus"},
    {"PrometheusFile", "export new --format prometheus -o logs/plumbline.prom"},
};

INSTANTIATE_TEST_SUITE_P(Faults, FullDiskPlumbline, testing::ValuesIn(kPlumblineOutputs),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace plumb
