// Whole runs of bench_resnet50 --device cuda on emulated GPUs: captured and eager, on one to four ranks,
// against the CPU device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "models/weights.h"
#include "tests/bench/image_files.h"
#include "tests/faults/started_program.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

// At 64 pixels and 4 images norms see at least 16 values; with fewer, rounding errors grow from step to step.
const std::string kShort = "--image-size 64 --bs 4 --warmup 0 --iters 1 --lr 0.001 --seed 5 --threads 1 ";
std::string tiny(int iterations) {
  return "--image-size 32 --bs 2 --warmup 0 --lr 0.00001 --seed 5 --threads 1 --iters " +
         std::to_string(iterations) + " ";
}
std::string half(int iterations) {
  return "--fp16 --image-size 64 --bs 2 --warmup 0 --lr 0.00001 --seed 5 --threads 1 --device cuda "
         "--no-autotune --iters " +
         std::to_string(iterations) + " ";
}
const std::string kCuda = "--device cuda --no-autotune ";

// 2 images with smooth patterns.
void write_batch(const std::string& file) {
  constexpr std::int64_t size = 32;
  TensorFile tensors;
  Tensor& images = tensors.floats["images"];
  images.dims = {2, 3, size, size};
  images.values.resize(static_cast<std::size_t>(2 * 3 * size * size));
  for (std::size_t i = 0; i < images.values.size(); ++i)
    images.values[i] = static_cast<float>(std::sin(0.013 * static_cast<double>(i)));
  tensors.integers["labels"] = {{2}, {3, 141}};
  write_safetensors(file, tensors);
}

struct TrainedRun {
  Ended ended;
  nlohmann::ordered_json result;
  std::vector<double> losses() const { return result.at("loss").get<std::vector<double>>(); }
};

TrainedRun run(int ranks, const std::string& arguments, const std::string& environment = "") {
  const Place place;
  TrainedRun run;
  const std::string gpus = environment.find("EMULATED_GPUS=") == std::string::npos
                               ? "EMULATED_GPUS=" + std::to_string(ranks) + " "
                               : "";
  const std::string command = place.resnet50(arguments);
  run.ended = place.run(ranks > 1 ? Place::mpirun(ranks, command) : command, gpus + environment);
  run.result = place.result();
  return run;
}

TrainedRun run_well(int ranks, const std::string& arguments, const std::string& environment = "") {
  TrainedRun good = run(ranks, arguments, environment);
  std::string said;
  for (const std::string& line : good.ended.lines) said += line + "\n";
  EXPECT_EQ(good.ended.exit_code, 0) << said;
  if (good.ended.exit_code == 0) {
    EXPECT_EQ(good.result.at("status"), "ok");
  }
  return good;
}

// Compares the first iteration, before any update; training_test.cpp compares later ones, with tensors that
// keep rounding errors small.
void expect_close_start(const TrainedRun& run, const TrainedRun& truth, double relative) {
  ASSERT_FALSE(run.losses().empty());
  EXPECT_NEAR(run.losses().front(), truth.losses().front(), relative * truth.losses().front());
}

TEST(CudaProgram, OneGpuStartsAsTheCpuDoesInEveryPrecision) {
  const TrainedRun cpu = run_well(1, kShort + "--device cpu");
  expect_close_start(run_well(1, kShort + kCuda + "--fp32"), cpu, 1e-4);
  // Rounding to 11 and to 8 bits, amplified by norms over 16 values.
  for (const char* precision : {"--fp16 --loss-scale 8 ", "--fp16 --loss-scale 8 --fusion off "})
    expect_close_start(run_well(1, kShort + kCuda + precision), cpu, 2e-2);
  expect_close_start(run_well(1, kShort + kCuda + "--bf16"), cpu, 5e-2);
}

TEST(CudaProgram, AReplayedGraphIsTheStepsOneByOne) {
  const std::string arguments = half(2) + "--loss-scale 8 --cuda-graph ";
  const TrainedRun captured = run_well(1, arguments + "on"), eager = run_well(1, arguments + "off");
  EXPECT_EQ(captured.losses(), eager.losses());
  // One arena, as planned: the driver reports little more in use.
  const auto& bytes = captured.result.at("memory_bytes");
  const auto planned = bytes.at("planned").get<double>();
  EXPECT_NEAR(bytes.at("peak").get<double>(), planned, 0.05 * planned);
}

// All ranks get the same batch, so the mean gradient is each rank's own: every world size behaves like one
// rank.
TEST(CudaProgram, AnyNumberOfGpusFedOneBatchIsOneGpu) {
  const ScratchFolder folder;
  const std::string batch = folder.path() + "/batch.safetensors";
  write_batch(batch);
  const std::string arguments = tiny(2) + kCuda + "--batch-file " + batch + " ";
  const std::vector<double> one = run_well(1, arguments).losses();
  for (const char* how :
       {"--comm nccl --cuda-graph on", "--comm nccl --cuda-graph off --no-overlap", "--comm mpi"}) {
    SCOPED_TRACE(how);
    const TrainedRun two = run_well(2, arguments + how);
    EXPECT_EQ(two.losses(), one);
    EXPECT_TRUE(two.result.at("checks").at("replicas_identical").get<bool>());
  }
  const std::string stored = arguments + "--fusion off";  // blocks end with x
  EXPECT_EQ(run_well(4, stored).losses(), run_well(1, stored).losses());
}

// The sums are the rank's own gradients: neither the communicator nor any dtype that represents them may
// change a value.
TEST(CudaProgram, OneRankGetsTheCollectivesOfTheCommunicatorThatItNames) {
  const auto said = [](const TrainedRun& run, const std::string& part) {
    return std::any_of(run.ended.lines.begin(), run.ended.lines.end(),
                       [&](const std::string& line) { return line.find(part) != std::string::npos; });
  };
  for (const auto& [arguments, ways] :
       {std::pair(tiny(2) + kCuda, std::vector<std::string>{"mpi", "nccl --cuda-graph off"}),
        std::pair(tiny(2) + kCuda + "--bf16 ",
                  std::vector<std::string>{"nccl --reduce-dtype fp32 --cuda-graph on"})}) {
    const TrainedRun without = run_well(1, arguments + "--verbose");
    EXPECT_FALSE(said(without, "collectives over"));
    EXPECT_EQ(without.result.at("config").at("comm"), "auto");
    for (const std::string& how : ways) {
      SCOPED_TRACE(how);
      const TrainedRun with = run_well(1, arguments + "--verbose --comm " + how);
      EXPECT_TRUE(said(with, "collectives over " + how.substr(0, how.find(' ')) + ","));
      EXPECT_EQ(said(with, "captured"), how.starts_with("nccl") && !how.ends_with("off"));
      EXPECT_EQ(with.losses(), without.losses());
    }
  }
}

TEST(CudaProgram, RanksWithTheirOwnBatchesStayReplicasInHalfPrecision) {
  for (const std::string& precision :
       {half(2) + "--loss-scale 8 ", tiny(2) + kCuda + "--bf16 --reduce-dtype fp32 "}) {
    const TrainedRun two = run_well(2, precision);
    EXPECT_TRUE(two.result.at("checks").at("replicas_identical").get<bool>());
    EXPECT_EQ(two.result.at("config").at("comm"), "nccl");
  }
}

// Sums of two ranks are the same in any order, so NCCL and MPI agree to the bit.
TEST(CudaProgram, TwoRanksThatShareAGpuOverNcclTrainAsOverMpiAndAsOneRank) {
  const std::string gpus = "EMULATED_GPUS=1", over_nccl = "--share-gpu --comm nccl ";
  const std::string fp32 = tiny(2) + kCuda;
  // In fp16 gradients overflow where the last norms see 2 values.
  for (const auto& [arguments, graph] :
       {std::pair(fp32, "on"), std::pair(half(2) + "--loss-scale 8 ", "off")}) {
    SCOPED_TRACE(arguments);
    const TrainedRun mpi = run_well(2, arguments + "--share-gpu", gpus);
    EXPECT_EQ(mpi.result.at("config").at("comm"), "mpi");
    EXPECT_EQ(run_well(2, arguments + over_nccl + "--cuda-graph " + graph, gpus).losses(), mpi.losses());
  }
  const ScratchFolder folder;
  const std::string batch = folder.path() + "/batch.safetensors", same = "--batch-file " + batch + " ";
  write_batch(batch);
  const TrainedRun shared = run_well(2, fp32 + over_nccl + same, gpus);
  EXPECT_EQ(shared.losses(), run_well(1, fp32 + same).losses());
  EXPECT_EQ(shared.result.at("config").at("comm"), "nccl");
  EXPECT_EQ(shared.result.at("ranks_per_gpu"), 2);
  EXPECT_EQ(shared.result.at("warnings").at(0), "2 ranks share one GPU: a check, not a speed");
}

TEST(CudaProgram, RanksWithAGpuEachMayBeLetShareAndDoNot) {
  const TrainedRun apart = run_well(2, tiny(2) + kCuda + "--share-gpu --comm nccl");
  EXPECT_FALSE(apart.result.contains("ranks_per_gpu"));
}

TEST(CudaProgram, AnOverflowSkipsTheStepOnEveryRank) {
  const TrainedRun scaled = run(2, tiny(2) + kCuda + "--fp16 --loss-scale 16777216");
  EXPECT_EQ(scaled.ended.exit_code, 76);  // no parameter moved, so the run is invalid
  EXPECT_NE(scaled.result.at("failure").get<std::string>().find(
                "the gradients of all 2 steps overflowed, the last at a loss scale of 16777216"),
            std::string::npos)
      << scaled.result.at("failure");
  EXPECT_EQ(scaled.result.at("skipped_iterations"), 2);
}

TEST(CudaProgram, DynamicScalingFallsUntilStepsCount) {
  const TrainedRun scaled = run_well(1, half(6));
  const auto scales = scaled.result.at("loss_scale").get<std::vector<double>>();
  ASSERT_EQ(scales.size(), 6U);
  EXPECT_EQ(scales.front(), 65536);
  int halvings = 0;
  for (std::size_t i = 1; i < scales.size(); ++i) {
    EXPECT_TRUE(scales[i] == scales[i - 1] || scales[i] == scales[i - 1] / 2) << i;
    halvings += scales[i] < scales[i - 1] ? 1 : 0;
  }
  EXPECT_GT(halvings, 0);
  EXPECT_LE(halvings, scaled.result.at("skipped_iterations").get<int>());
}

TEST(CudaProgram, ImagesFromAFolderTrainAlikeCapturedOrNot) {
  const ScratchFolder folder;
  write_image_folder(folder.path(), 3, 8);
  const std::string arguments =
      tiny(5) + kCuda + "--data-workers 1 --data " + folder.path() + " --cuda-graph ";
  const TrainedRun captured = run_well(1, arguments + "on"), eager = run_well(1, arguments + "off");
  EXPECT_EQ(captured.losses(), eager.losses());
  const TrainedRun cpu = run_well(1, kShort + "--data-workers 1 --data " + folder.path() + " --device cpu");
  expect_close_start(run_well(1, kShort + "--data-workers 1 --data " + folder.path() + " " + kCuda), cpu,
                     1e-4);
}

TEST(CudaProgram, WithoutAGpuItSaysSoAndTakesTheCpu) {
  const TrainedRun fallen = run_well(1, tiny(2), "EMULATED_GPUS=0");
  EXPECT_EQ(fallen.result.at("device"), "cpu");
  ASSERT_FALSE(fallen.ended.lines.empty());
  EXPECT_NE(fallen.ended.lines.front().find("(no usable GPU)"), std::string::npos)
      << fallen.ended.lines.front();
}

}  // namespace
}  // namespace plumb
