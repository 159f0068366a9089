// R16: a signal ends the run in good order, shows what was measured, and never makes it a score.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <regex>
#include <thread>

#include "base/error.h"
#include "results/compare/samples.h"
#include "tests/faults/started_program.h"

namespace plumb {
namespace {

const std::string kEndless = kSmall + "--lr 0.001 --iters 100000 ";

// Nothing of the run can be taken for a finished one; returns its iterations.
std::size_t expect_marked(const Place& place, const std::string& signal) {
  expect_no_score(place, "interrupted by " + signal + ", ended by signal ");
  const std::vector<std::string> parts = place.contents_ending_in(".log.part");
  EXPECT_EQ(parts.size(), 1u);
  const int lines = parts.empty() ? 0 : expect_whole_lines(place.file(parts.front()));
  const nlohmann::ordered_json result = place.result();
  EXPECT_EQ(result.at("step_seconds").size(), static_cast<std::size_t>(lines));
  EXPECT_EQ(result.at("images_per_second").at("mean"), 0);
  try {
    load_samples({place.file("runs")});
    ADD_FAILURE() << "an interrupted run is a sample";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("interrupted by " + signal), std::string::npos) << error.what();
  }
  return static_cast<std::size_t>(lines);
}

void expect_table(const std::string& output, const std::string& signal, std::size_t iterations) {
  EXPECT_NE(output.find("\n  INTERRUPTED"), std::string::npos) << output;
  const std::string one_line = std::regex_replace(output, std::regex("\\s+"), " ");
  EXPECT_NE(one_line.find(" by " + signal + ", ended by signal "), std::string::npos) << output;
  EXPECT_NE(one_line.find(" at iteration " + std::to_string(iterations) + " of 100000: no score"),
            std::string::npos)
      << output;
  EXPECT_NE(output.find("step time, median"), std::string::npos) << output;
  EXPECT_EQ(output.find("images/s"), std::string::npos) << output;
}

class Interrupt : public testing::TestWithParam<std::pair<int, std::string>> {};

TEST_P(Interrupt, EndsTheRunWithTheTableOfWhatWasMeasured) {
  const auto& [signal, name] = GetParam();
  const Place place;
  StartedProgram program = place.start(place.bench(kEndless));
  wait_for_lines(place, program);
  program.send(0, signal);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, 128 + signal);
  const std::size_t iterations = expect_marked(place, name);
  EXPECT_GE(iterations, 3u);
  expect_table(ended.output, name, iterations);
  ASSERT_FALSE(ended.lines.empty());
  EXPECT_TRUE(ended.lines.back().starts_with("bench_arcface: interrupted by " + name)) << ended.lines.back();
}

INSTANTIATE_TEST_SUITE_P(Faults, Interrupt,
                         testing::Values(std::pair{SIGINT, "SIGINT"}, std::pair{SIGHUP, "SIGHUP"}),
                         [](const auto& tested) { return tested.param.second; });

TEST(Interrupted, ByALimitOfCpuTime) {
  const Place place;
  const Ended ended = place.run("sh -c 'ulimit -S -t 3 && exec " + place.bench(kEndless) + "'");
  EXPECT_EQ(ended.exit_code, 128 + SIGXCPU);
  EXPECT_GE(expect_marked(place, "SIGXCPU"), 1u);
}

TEST(Interrupted, RunWithJsonPrintsAnObjectThatSaysFailed) {
  const Place place;
  StartedProgram program = place.start(place.bench(kEndless + "--json"));
  wait_for_lines(place, program);
  program.send(0, SIGINT);
  const auto json = nlohmann::ordered_json::parse(program.wait().output);
  EXPECT_EQ(json.at("status"), "failed");
  EXPECT_TRUE(json.at("failure").get<std::string>().starts_with("interrupted by SIGINT"));
}

TEST(Interrupted, BeforeTheFirstIterationEndsAtOnce) {
  const Place place;
  StartedProgram program = place.start(place.bench(kEndless));
  while (program.running() && program.ranks().empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  program.send(0, SIGTERM);
  EXPECT_EQ(program.wait().exit_code, 128 + SIGTERM);
  EXPECT_TRUE(place.contents_ending_in(".log").empty());
}

// In a job of two ranks `interrupt` sends rank 0 SIGTERM.
void expect_job_ended(const std::function<void(const StartedProgram&)>& interrupt) {
  const Place place;
  StartedProgram program = place.start(Place::mpirun(2, place.bench(kEndless)));
  wait_for_lines(place, program);
  interrupt(program);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, 128 + SIGTERM) << ended.launcher_messages;
  EXPECT_TRUE(program.processes().empty()) << "a process is left";
  expect_table(ended.output, "SIGTERM", expect_marked(place, "SIGTERM"));
  EXPECT_NE(ended.output.find("by the launcher"), std::string::npos) << ended.output;
  int left_words = 0;
  for (const std::string& words : place.contents_ending_in(".json")) {
    if (words.find("/rank_") == std::string::npos) continue;
    const auto left = nlohmann::ordered_json::parse(read_text(place.file(words)));
    EXPECT_EQ(left.at("exit_code"), 128 + SIGTERM) << words;
    ++left_words;
  }
  EXPECT_GE(left_words, 1);  // mpirun may give rank 1 too little time
}

TEST(InterruptedJob, OfRank0EndsAllRanks) {
  expect_job_ended([](const StartedProgram& program) { program.send(0, SIGTERM); });
}

TEST(InterruptedJob, OfRank1AloneEndsAllRanks) {
  const Place place;
  StartedProgram program = place.start(Place::mpirun(2, place.bench(kEndless)));
  wait_for_lines(place, program);
  program.send(1, SIGTERM);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, 128 + SIGTERM);
  expect_named(ended, {"rank 1 on ", "was ended by SIGTERM", "in the window, iteration "});
  EXPECT_TRUE(program.processes().empty()) << "a process is left";
  expect_no_score(place, "was ended by SIGTERM");
}

TEST(InterruptedJob, OfAllRanksAtOnceShowsRank0sTable) {
  expect_job_ended([](const StartedProgram& program) {
    std::vector<Process> ranks = program.ranks();
    std::ranges::sort(ranks, std::greater{}, &Process::rank);
    for (const Process& process : ranks) ::kill(process.pid, SIGTERM);
  });
}

// mpirun passes signals on, most as SIGTERM; docs/reference/exit-codes.md has its codes.
TEST(InterruptedJob, ThroughMpirunLeavesNoProcessAndNoScore) {
  for (const auto& [signal, code] : {std::pair{SIGINT, 1}, std::pair{SIGXCPU, 128 + SIGXCPU}}) {
    const Place place;
    StartedProgram program = place.start(Place::mpirun(2, place.bench(kEndless)));
    wait_for_lines(place, program);
    for (const Process& process : program.launchers()) ::kill(process.pid, signal);
    EXPECT_EQ(program.wait().exit_code, code) << "signal " << signal;
    EXPECT_TRUE(program.processes().empty()) << "a process is left by signal " << signal;
    // "by SIGTERM", if mpirun gives it the time.
    expect_no_score(place, signal == SIGXCPU ? "interrupted by SIGXCPU" : "interrupted");
  }
}

// Rank 0 waits in a collective for a rank that never comes.
TEST(InterruptedJob, EndsWhereAnotherRankIsStuck) {
  const Place place;
  StartedProgram program = place.start(Place::mpirun(2, place.bench(kEndless)));
  wait_for_lines(place, program);
  program.send(1, SIGSTOP);
  program.send(0, SIGTERM);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, 128 + SIGTERM) << ended.launcher_messages;
  EXPECT_TRUE(program.processes().empty()) << "a process is left";
  expect_no_score(place, "interrupted");
}

}  // namespace
}  // namespace plumb
