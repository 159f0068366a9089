// R5: whenever a process is killed, every written line is whole, and no unfinished file looks finished.
// PLUMB_FAULTS_KILLS: number of kills (10); PLUMB_FAULTS_SEED: reproduces a failure.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/faults/started_program.h"

namespace plumb {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kIterations = 20;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::string command(const Place& place, int ranks) {
  const std::string bench = place.bench(kOne + "--iters " + std::to_string(kIterations));
  return ranks == 1 ? bench : Place::mpirun(ranks, bench);
}

// Waits until a rank can be killed, and kills it. False if the run ended first.
bool kill_one(StartedProgram& program, std::mt19937_64& random) {
  while (program.running()) {
    const std::vector<Process> ranks = program.ranks();
    if (!ranks.empty()) return ::kill(ranks[random() % ranks.size()].pid, SIGKILL) == 0;
  }
  return false;
}

// Checks a killed run's files; returns the number of log lines.
int expect_consistent(const Place& place, bool killed) {
  int lines = 0;
  for (const std::string& part : place.contents_ending_in(".log.part")) {
    lines = expect_whole_lines(place.file(part));
    // result.json precedes the log; between the last check and the log's rename both are complete.
    const nlohmann::ordered_json result = place.result();
    EXPECT_TRUE(result.is_object()) << "a log without a result.json";
    if (result.is_object() && lines < kIterations) {
      EXPECT_EQ(result.at("status"), "failed");
    }
  }
  for (const std::string& log : place.contents_ending_in(".log")) {
    EXPECT_EQ(expect_whole_lines(place.file(log)), kIterations);
    EXPECT_EQ(place.result().at("status"), "ok") << "a finished log of a failed run";
  }
  if (!killed) {
    EXPECT_EQ(place.contents_ending_in(".log").size(), 1u);
  }
  return lines;
}

TEST(Kill, AtAnyTimeLeavesWholeLinesAndNoScore) {
  const std::uint64_t kills = number_from("PLUMB_FAULTS_KILLS", 10);
  const std::uint64_t seed = number_from("PLUMB_FAULTS_SEED", std::random_device{}());
  std::printf("PLUMB_FAULTS_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  int unfinished_logs = 0;
  std::chrono::duration<double> whole_run{1};
  for (std::uint64_t i = 0; i < kills; ++i) {
    SCOPED_TRACE("kill " + std::to_string(i));
    const Place place;
    const int ranks = i % 5 == 4 ? 2 : 1;
    const auto start = Clock::now();
    StartedProgram program = place.start(command(place, ranks));
    if (i % 2 == 0) {  // at any time of a run, start and end included
      const double share = std::uniform_real_distribution<>(0, 1)(random);
      while (program.running() && Clock::now() - start < share * whole_run)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } else {  // between two lines, or within one
      const int lines = static_cast<int>(random() % (kIterations - 1)) + 1;
      while (program.running() && log_lines_so_far(place) < lines)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 50));
    }
    const bool killed = kill_one(program, random);
    const Ended ended = program.wait();
    if (killed)
      EXPECT_TRUE(ended.exit_code == kKilled || ended.exit_code == kPeerLost || ended.exit_code == 0)
          << ended.exit_code;
    else
      whole_run = Clock::now() - start;
    EXPECT_TRUE(program.processes().empty()) << "a process is left";
    const int lines = expect_consistent(place, ended.exit_code != 0);
    unfinished_logs += lines > 0 && lines < kIterations;
  }
  EXPECT_GT(unfinished_logs, 0) << "no kill met a run in the middle";
}

}  // namespace
}  // namespace plumb
