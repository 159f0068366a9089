// bench_allreduce on emulated GPUs: over the stand-in for NCCL, and through page-locked memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/bench/run/program_runs.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

ProgramRun run(int ranks, int gpus, const std::string& arguments) {
  const ScratchFolder folder;
  return run_program(folder.path(), ranks, PLUMB_BENCH_ALLREDUCE, "--device cuda " + arguments,
                     "export EMULATED_GPUS=" + std::to_string(gpus) + "; ");
}

nlohmann::ordered_json measure(int ranks, const std::string& arguments, int gpus = 0) {
  const ProgramRun ended = run(ranks, gpus == 0 ? ranks : gpus, "--json " + arguments);
  EXPECT_EQ(ended.exit_code, 0) << arguments << "\n" << ended.messages;
  return nlohmann::ordered_json::parse(ended.output, nullptr, false);
}

void expect_all_right(const nlohmann::ordered_json& json, std::size_t results) {
  ASSERT_EQ(json.at("results").size(), results);
  for (const auto& result : json.at("results")) {
    EXPECT_EQ(result.at("wrong_elements"), 0) << result;
    EXPECT_GT(result.at("seconds"), 0) << result;
  }
}

const std::string kShort = " -b 1K -e 4K -f 4 -n 3 -w 1 ";

TEST(CudaAllreduce, EveryCollectiveOverNcclIsExact) {
  for (const char* collective : {"allreduce", "allgather", "reducescatter", "broadcast"}) {
    const auto json = measure(2, kShort + "--comm nccl --collective " + collective);
    EXPECT_EQ(json.at("comm"), "nccl");
    expect_all_right(json, 4);
  }
}

TEST(CudaAllreduce, OtherPrecisionsAreExactToo) {
  expect_all_right(measure(3, kShort + "--dtype fp16"), 4);
  const auto json = measure(2, kShort + "--dtype bf16");
  expect_all_right(json, 4);
}

TEST(CudaAllreduce, MpiCarriesAGpusMessagesThroughTheHost) {
  for (const char* collective : {"allreduce", "allgather", "reducescatter", "broadcast"}) {
    const auto json = measure(2, kShort + "--comm mpi --collective " + collective);
    expect_all_right(json, 4);
  }
}

TEST(CudaAllreduce, EveryCollectiveOverNcclIsExactOnASharedGpuAndCalledACheck) {
  for (const char* collective : {"allreduce", "allgather", "reducescatter", "broadcast"}) {
    const auto json = measure(2, kShort + "--comm nccl --share-gpu --collective " + collective, 1);
    EXPECT_EQ(json.at("ranks_per_gpu"), 2);
    EXPECT_EQ(std::ranges::count(json.at("warnings"), "2 ranks share one GPU: a check, not a speed"), 1)
        << json.at("warnings");  // a busy machine is another
    expect_all_right(json, 4);
  }
  const ProgramRun table = run(2, 1, kShort + "--comm nccl --share-gpu");
  EXPECT_NE(table.output.find("2 ranks share one GPU: a check, not a speed"), std::string::npos)
      << table.output;
}

TEST(CudaAllreduce, ASharedGpuIsRefusedUnlessItIsAskedFor) {
  const ProgramRun refused = run(2, 1, kShort + "--comm nccl");
  EXPECT_EQ(refused.exit_code, 64);
  EXPECT_NE(refused.messages.find("or pass --share-gpu"), std::string::npos) << refused.messages;
}

TEST(CudaAllreduce, ReplaysTheStepOfAModelInHalf) {
  const auto json = measure(2, "--replay resnet50:fp16 --bs 1 -n 1 -w 0");
  expect_all_right(json, json.at("results").size());
}

}  // namespace
}  // namespace plumb
