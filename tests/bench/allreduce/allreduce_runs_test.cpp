// Whole runs of bench_allreduce, started as a user would.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "results/record/links.h"
#include "tests/bench/run/program_runs.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

const std::string kShort = " -b 1K -e 4K -f 4 -n 3 -w 1 ";

struct Answer {
  int exit_code = -1;
  std::string output, messages;
  Json json;
};

class AllreduceRuns : public testing::Test {
 protected:
  Answer start(int ranks, const std::string& program, const std::string& arguments,
               const std::string& before = "") const {
    const ProgramRun run = run_program(folder_.path(), ranks, program, arguments, before);
    return {run.exit_code, run.output, run.messages, Json::parse(run.output, nullptr, false)};
  }
  Answer measure(int ranks, const std::string& arguments) const {
    return start(ranks, PLUMB_BENCH_ALLREDUCE, arguments);
  }
  Answer measure_well(int ranks, const std::string& arguments) const {
    const Answer answer = measure(ranks, arguments + " --json");
    EXPECT_EQ(answer.exit_code, 0) << answer.messages;
    EXPECT_TRUE(answer.json.is_object()) << answer.output;
    return answer;
  }

  ScratchFolder folder_;
};

TEST_F(AllreduceRuns, EveryCollectiveIsMeasuredInAndOutOfPlaceWithoutAWrongElement) {
  for (const char* collective : {"allreduce", "allgather", "reducescatter", "broadcast"}) {
    const Json json = measure_well(3, kShort + "--collective " + collective).json;
    EXPECT_EQ(json.at("schema"), "plumbline.allreduce/2");
    EXPECT_EQ(json.at("world_size"), 3);
    ASSERT_EQ(json.at("results").size(), 4u) << collective;
    int in_place = 0;
    for (const Json& result : json.at("results")) {
      EXPECT_EQ(result.at("collective"), collective);
      EXPECT_EQ(result.at("wrong_elements"), 0);
      EXPECT_GT(result.at("seconds"), 0);
      EXPECT_GT(result.at("busbw_bytes_per_second"), 0);
      const Json& seconds = result.at("iteration_seconds");
      EXPECT_LE(seconds.at("min"), seconds.at("median"));
      EXPECT_LE(seconds.at("median"), seconds.at("max"));
      in_place += result.at("in_place").get<bool>() ? 1 : 0;
    }
    EXPECT_EQ(in_place, 2);
  }
}

TEST_F(AllreduceRuns, HalvesAreExact) {
  for (const char* what : {"--dtype fp16", "--dtype bf16", "--dtype bf16 --collective allgather"}) {
    const Json json = measure_well(2, kShort + what).json;
    for (const Json& result : json.at("results")) EXPECT_EQ(result.at("wrong_elements"), 0) << what;
  }
}

TEST_F(AllreduceRuns, OneWrongElementEndsWith76AndNamesItsRank) {
  const Answer answer = start(2, PLUMB_DAMAGED_ALLREDUCE, kShort + "--json --output links.json",
                              "export PLUMB_DAMAGED_RANK=1; ");
  EXPECT_EQ(answer.exit_code, 76);
  EXPECT_NE(answer.messages.find("1 wrong element on rank 1"), std::string::npos) << answer.messages;
  EXPECT_NE(answer.messages.find("allreduce of 1024 bytes out of place"), std::string::npos)
      << answer.messages;
  EXPECT_EQ(answer.output.find("\"wrong_elements\": 1"), answer.output.rfind("\"wrong_elements\": 1"));
  EXPECT_NE(answer.output.find("\"wrong_elements\": 1"), std::string::npos);
  EXPECT_EQ(folder_.list(), (std::vector<std::string>{"err.txt", "out.txt"})) << "no links.json from it";
}

TEST_F(AllreduceRuns, ARankThatStopsIsNamed) {
  const Answer answer = start(2, PLUMB_DAMAGED_ALLREDUCE, kShort + "--timeout-s 1",
                              "export PLUMB_DAMAGED_RANK=1 PLUMB_STOPS=1; ");
  // MPICH's mpirun takes 1, and calls it this signal, if a rank's connection closes before it sees it end.
  const bool code_was_lost = answer.output.find("EXIT STRING: Hangup") != std::string::npos;
  const bool was_killed_first = answer.exit_code == 128 + SIGKILL;  // by mpirun, before it could exit
  if (!was_killed_first) {
    EXPECT_EQ(answer.exit_code, code_was_lost ? 1 : 75);
  }
  EXPECT_NE(answer.messages.find("bench_allreduce: rank 1 on "), std::string::npos) << answer.messages;
  EXPECT_NE(answer.messages.find("has sent nothing for "), std::string::npos) << answer.messages;
}

TEST_F(AllreduceRuns, OneRankSaysWhatItMeasures) {
  const Answer answer = measure(1, kShort);
  EXPECT_EQ(answer.exit_code, 0) << answer.messages;
  EXPECT_NE(answer.output.find("one rank sends nothing"), std::string::npos) << answer.output;
  const Answer refused = measure(1, kShort + "--output links.json");
  EXPECT_EQ(refused.exit_code, 64);
  EXPECT_NE(refused.messages.find("links.json"), std::string::npos) << refused.messages;
}

TEST_F(AllreduceRuns, LinksAreWrittenOnceUnlessOverwritten) {
  const std::string file = folder_.path() + "/links.json", arguments = kShort + "--output links.json ";
  measure_well(2, arguments);
  const Links links = read_links(file);
  EXPECT_EQ(links.comm, "mpi");
  ASSERT_EQ(links.allreduces.size(), 2u);
  EXPECT_EQ(links.allreduces[1].bytes, 4096);
  write_text(file, "mine");
  const Answer refused = measure(2, arguments);
  EXPECT_EQ(refused.exit_code, 73);
  EXPECT_NE(refused.messages.find("links.json"), std::string::npos) << refused.messages;
  EXPECT_EQ(read_text(file), "mine");
  measure_well(2, arguments + "--overwrite ");
  EXPECT_EQ(read_links(file).allreduces.size(), 2u);
}

TEST_F(AllreduceRuns, PairsNeedTwoHosts) {
  const Answer answer = measure(2, "--pairs");
  EXPECT_EQ(answer.exit_code, 64) << answer.messages;
  EXPECT_NE(answer.messages.find("start ranks on two hosts or more"), std::string::npos) << answer.messages;
}

TEST_F(AllreduceRuns, PairsOverNcclAreRefused) {
  const Answer answer = measure(1, "--pairs --comm nccl");
  const bool has_nccl = answer.messages.find("--comm nccl is not available") == std::string::npos;
  EXPECT_EQ(answer.exit_code, has_nccl ? 64 : 69) << answer.messages;
  EXPECT_NE(answer.messages.find(has_nccl ? "--pairs and --comm nccl exclude each other" : "pass --comm mpi"),
            std::string::npos)
      << answer.messages;
}

// The messages of a program.json, as (kind, bytes).
std::vector<std::pair<std::string, std::int64_t>> sent_by(const Json& program) {
  std::vector<std::pair<std::string, std::int64_t>> sent;
  for (const Json& op : program.at("ops")) {
    if (!op.contains("collective")) continue;
    const Json& collective = op.at("collective");
    const std::int64_t size = collective.at("dtype") == "f32" || collective.at("dtype") == "i32" ? 4 : 2;
    sent.emplace_back(op.at("name"), collective.at("elements").get<std::int64_t>() * size);
  }
  return sent;
}

class ReplayedRun : public AllreduceRuns {
 protected:
  // Trains, and returns the folder of the run.
  std::string train(int ranks, const std::string& program, const std::string& arguments) const {
    const ProgramRun run =
        run_program(folder_.path(), ranks, program,
                    arguments + " --bs 1 --threads 1 --warmup 0 --iters 1 --no-check --no-autotune");
    EXPECT_EQ(run.exit_code, 0) << run.messages;
    return folder_.path() + "/runs/" + folder_.list("runs").front();
  }
  Json program_of(const std::string& run) const { return Json::parse(read_text(run + "/program.json")); }
  std::vector<std::pair<std::string, std::int64_t>> replayed(const Json& json) const {
    std::vector<std::pair<std::string, std::int64_t>> sent;
    for (const Json& result : json.at("results"))
      sent.emplace_back(result.at("name"), result.at("bytes").get<std::int64_t>());
    return sent;
  }
};

TEST_F(ReplayedRun, SendsExactlyTheBucketsOfResnet50) {
  const std::string run = train(2, PLUMB_BENCH_RESNET50, "--image-size 32");
  const Json json = measure_well(2, "--replay resnet50 -n 1 -w 0").json;
  EXPECT_EQ(replayed(json), sent_by(program_of(run)));
  EXPECT_GT(replayed(json).size(), 4u);
}

TEST_F(ReplayedRun, SendsTheBucketsAndTheHeadsMessagesOfFaces) {
  const std::string run = train(2, PLUMB_BENCH_ARCFACE, "--backbone y1");
  const Json json = measure_well(2, "--replay y1 --bs 1 -n 1 -w 0").json;
  EXPECT_EQ(replayed(json), sent_by(program_of(run)));
  for (const Json& result : json.at("results")) EXPECT_EQ(result.at("wrong_elements"), 0);
}

}  // namespace
}  // namespace plumb
