// Whole runs: ranks agree with each other and with one rank, weights round-trip, memory matches the plan.
// Where any network will do, it is a small one: y1 or the one in small_resnet.h.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "models/weights.h"
#include "tests/bench/run/program_runs.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

const std::string kSmall = "--image-size 32 --bs 4 --lr 0.001 --warmup 1 --seed 7 ";

// With --json, one thread per rank.
ProgramRun run_bench_resnet50(const std::filesystem::path& folder, const std::string& arguments,
                              int ranks = 1) {
  return run_program(folder, ranks, PLUMB_BENCH_RESNET50, "--threads 1 --json " + arguments);
}

// Likewise, with the small network.
ProgramRun run_small(const std::filesystem::path& folder, int ranks, const std::string& arguments,
                     const std::string& before = "") {
  return run_program(folder, ranks, PLUMB_SMALL_RESNET, "--threads 1 --json " + arguments, before);
}

// Runs y1 on two ranks.
ProgramRun run_y1(const std::filesystem::path& folder, const std::string& arguments) {
  return run_program(folder, 2, PLUMB_BENCH_ARCFACE,
                     "--backbone y1 --head dp --classes 100 --bs 2 --seed 7 --threads 1 --json " + arguments);
}

std::vector<double> losses(const ProgramRun& run) {
  return run.result.at("loss").get<std::vector<double>>();
}

// 4 images of 32 x 32 with smooth patterns.
void write_batch(const std::filesystem::path& file) {
  TensorFile tensors;
  Tensor& images = tensors.floats["images"];
  images.dims = {4, 3, 32, 32};
  images.values.resize(4 * 3 * 32 * 32);
  for (std::size_t i = 0; i < images.values.size(); ++i)
    images.values[i] = static_cast<float>(std::sin(0.013 * static_cast<double>(i)));
  tensors.integers["labels"] = {{4}, {3, 141, 592, 653}};
  write_safetensors(file, tensors);
}

double largest_difference(const TensorFile& a, const TensorFile& b) {
  double largest = 0;
  for (const auto& [name, tensor] : a.floats)
    for (std::size_t i = 0; i < tensor.values.size(); ++i)
      largest =
          std::max(largest, std::abs(static_cast<double>(tensor.values[i]) - b.floats.at(name).values[i]));
  return largest;
}

// On CPUs that have neither AVX512_BF16 nor AMX: refused, in one sentence.
TEST(TrainingRuns, InBf16StayNearFp32AndAgreeAcrossRanks) {
  const ScratchFolder folder;
  const std::string arguments =
      "--image-size 64 --bs 8 --lr 0.001 --warmup 1 --seed 7 --device cpu --iters 3 ";
  const ProgramRun half = run_small(folder.path(), 2, arguments + "--bf16 --log-dir half");
  if (half.exit_code == 64) {
    EXPECT_NE(half.messages.find("it has neither AVX512_BF16 nor AMX; pass --fp32"), std::string::npos)
        << half.messages;
    GTEST_SKIP() << "no bf16 here";
  }
  ASSERT_EQ(half.exit_code, 0) << half.messages;
  EXPECT_TRUE(half.result.at("checks").at("replicas_identical").get<bool>());
  const ProgramRun single = run_small(folder.path(), 2, arguments + "--log-dir single");
  ASSERT_EQ(single.exit_code, 0) << single.messages;
  const std::vector<double> expected = losses(single);
  expect_near(losses(half), expected, 3e-2);
  EXPECT_NE(losses(half), expected);
}

TEST(TrainingRuns, TwoRanksFedTheSameBatchAreOneRank) {
  const ScratchFolder folder;
  write_batch(folder.path() + "/batch.safetensors");
  const std::string arguments = kSmall + "--iters 4 --batch-file batch.safetensors --save-weights ";
  const ProgramRun one = run_small(folder.path(), 1, arguments + "one.safetensors");
  ASSERT_EQ(one.exit_code, 0) << one.messages;
  const ProgramRun two = run_small(folder.path(), 2, arguments + "two.safetensors");
  ASSERT_EQ(two.exit_code, 0) << two.messages;
  EXPECT_TRUE(two.result.at("checks").at("replicas_identical").get<bool>());  // bit for bit
  expect_near(losses(two), losses(one), 1e-6);
  // The mean of two equal gradients is that gradient: only rounding of the sum could differ, and x + x is
  // exact.
  EXPECT_EQ(largest_difference(read_safetensors(folder.path() + "/one.safetensors"),
                               read_safetensors(folder.path() + "/two.safetensors")),
            0);
}

TEST(TrainingRuns, OneRankThatNamesACommunicatorIsOneRank) {
  const ScratchFolder folder;
  const ProgramRun one = run_small(folder.path(), 1, kSmall + "--iters 2");
  const ProgramRun named = run_small(folder.path(), 1, kSmall + "--iters 2 --comm mpi --log-dir named");
  ASSERT_EQ(named.exit_code, 0) << named.messages;
  EXPECT_EQ(losses(named), losses(one));
  EXPECT_EQ(one.result.at("exposed_communication_seconds"), 0);
  EXPECT_GT(named.result.at("exposed_communication_seconds").get<double>(), 0);
}

TEST(TrainingRuns, OverlapChangesNothingButTime) {
  const ScratchFolder folder;
  const std::string arguments = "--lr 0.001 --warmup 1 --iters 3 --bucket-mb 1 --save-weights ";
  ASSERT_EQ(run_y1(folder.path(), arguments + "overlap.safetensors").exit_code, 0);
  ASSERT_EQ(run_y1(folder.path(), arguments + "after.safetensors --no-overlap --log-dir after").exit_code, 0);
  EXPECT_EQ(largest_difference(read_safetensors(folder.path() + "/overlap.safetensors"),
                               read_safetensors(folder.path() + "/after.safetensors")),
            0);
}

// One step: rounding gradients to fp16 (11 bits) before and after the sum moves weights equally, up to 2^-10.
TEST(TrainingRuns, HalfPrecisionExchangeRoundsGradientsAndNothingElse) {
  const ScratchFolder folder;
  const auto weights_after_a_step = [&](const std::string& name, const std::string& arguments) {
    const ProgramRun run =
        run_y1(folder.path(), "--iters 1 --warmup 0 --save-weights " + name + " " + arguments);
    EXPECT_EQ(run.exit_code, 0) << run.messages;
    return read_safetensors(folder.path() + "/" + name);
  };
  const TensorFile start = weights_after_a_step("start", "--lr 0");
  const TensorFile full = weights_after_a_step("full", "--lr 0.001");
  const TensorFile half = weights_after_a_step("half", "--lr 0.001 --reduce-dtype fp16 --log-dir half_logs");
  const double movement = largest_difference(full, start), rounding = largest_difference(half, full);
  EXPECT_GT(rounding, 0);
  EXPECT_LT(rounding, movement / 1024);
}

TEST(TrainingRuns, RepeatBitForBit) {
  const ScratchFolder folder;
  const std::string arguments = "--lr 0.001 --warmup 1 --iters 3 --deterministic --save-weights ";
  ASSERT_EQ(run_y1(folder.path(), arguments + "a.safetensors").exit_code, 0);
  ASSERT_EQ(run_y1(folder.path(), arguments + "b.safetensors").exit_code, 0);
  EXPECT_EQ(largest_difference(read_safetensors(folder.path() + "/a.safetensors"),
                               read_safetensors(folder.path() + "/b.safetensors")),
            0);
}

TEST(TrainingRuns, WinogradRepeatsBitForBitAndStaysNearDirectConvolutions) {
  const ScratchFolder folder;
  const auto run = [&](int ranks, const std::string& arguments) {
    ProgramRun made = run_bench_resnet50(
        folder.path(), "--image-size 64 --bs 4 --lr 0.001 --iters 3 --warmup 1 " + arguments, ranks);
    EXPECT_EQ(made.exit_code, 0) << made.messages;
    return made;
  };
  const ProgramRun chosen = run(2, "");
  if (!chosen.result.contains("winograd_ops")) GTEST_SKIP() << "no Winograd convolutions here";
  const ProgramRun direct = run(2, "--conv direct --log-dir direct");
  EXPECT_FALSE(direct.result.contains("winograd_ops"));
  EXPECT_EQ(losses(run(2, "")), losses(chosen));
  EXPECT_NEAR(losses(chosen).front(), losses(direct).front(), 1e-4);
  EXPECT_NEAR(losses(chosen).back(), losses(direct).back(), 0.3);  // ReLUs turn: 0.07 measured
  const auto ops = chosen.result.at("winograd_ops").get<std::vector<std::string>>();
  EXPECT_EQ(ops.front(), "layer1.0.conv2.forward");
  EXPECT_EQ(ops.size(), 18u);  // three passes of three convolutions in each of the first two stages
}

TEST(TrainingRuns, GoOnForSecondsOnAllRanksAlike) {
  const ScratchFolder folder;
  const ProgramRun run = run_y1(folder.path(), "--lr 0.001 --warmup 1 --iters 2 --seconds 2");
  ASSERT_EQ(run.exit_code, 0) << run.messages;
  const auto seconds = run.result.at("step_seconds").get<std::vector<double>>();
  EXPECT_GE(std::accumulate(seconds.begin() + 1, seconds.end(), 0.0), 1.99) << "without the warm-up";
  EXPECT_EQ(run.result.at("iterations").get<std::size_t>(), seconds.size());
  EXPECT_EQ(losses(run).size(), seconds.size());
}

TEST(TrainingRuns, SavedWeightsGoOnWhereTheyStopped) {
  const ScratchFolder folder;
  const ProgramRun longer = run_small(folder.path(), 1, kSmall + "--iters 4 --momentum 0");
  const ProgramRun start =
      run_small(folder.path(), 1, kSmall + "--iters 2 --momentum 0 --save-weights w.safetensors");
  ASSERT_EQ(start.exit_code, 0) << start.messages;
  const ProgramRun rest =
      run_small(folder.path(), 1, kSmall + "--iters 2 --momentum 0 --weights w.safetensors");
  ASSERT_EQ(rest.exit_code, 0) << rest.messages;
  const std::vector<double> whole = losses(longer);
  EXPECT_EQ(losses(rest), std::vector<double>(whole.begin() + 2, whole.end()));
}

TEST(TrainingRuns, FirstLineSaysMoreToTheVerbose) {
  const ScratchFolder folder;
  const auto first_line = [&](const std::string& arguments) {
    const ProgramRun run = run_small(folder.path(), 1, kSmall + "--iters 2 " + arguments);
    return run.messages.substr(0, run.messages.find('\n'));
  };
  const std::string short_line = first_line("");
  EXPECT_NE(short_line.find(", 1 rank, batch 4 each"), std::string::npos) << short_line;
  EXPECT_NE(first_line("--verbose").find(", 32 px"), std::string::npos);
  if (short_line.find("no usable GPU") == std::string::npos) GTEST_SKIP() << "a GPU is there: " << short_line;
  EXPECT_EQ(short_line.find("CUDA"), std::string::npos) << short_line;
  EXPECT_NE(first_line("--verbose").find("no usable GPU: "), std::string::npos);
}

TEST(TrainingRuns, LogHasOneLinePerIterationAndRealFields) {
  const ScratchFolder folder;
  const ProgramRun run = run_small(folder.path(), 1, "--image-size 32 --bs 4 --iters 5 --warmup 1 --lr 0.05");
  ASSERT_EQ(run.exit_code, 0) << run.messages;
  std::ifstream log(folder.path() + "/logs/1n1g/resnet50_b4_fp32_1.log");
  std::vector<std::string> lines;
  for (std::string line; std::getline(log, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 5u);
  char first_loss[32];
  std::snprintf(first_loss, sizeof(first_loss), "loss %.5f", losses(run).front());
  EXPECT_NE(lines.front().find(first_loss), std::string::npos) << lines.front();
  EXPECT_NE(lines.front().find("acc1 0.00000"), std::string::npos);
  EXPECT_EQ(lines.back().find("acc5 0.00000"), std::string::npos)
      << "four images are soon among the five best: " << lines.back();
}

TEST(TrainingRuns, ProfileAndTraceHoldEveryStepAndLeaveTheRunAsItIs) {
  const ScratchFolder folder;
  const std::string arguments = "--lr 0.001 --warmup 1 --iters 3 --save-weights ";
  const ProgramRun plain = run_y1(folder.path(), arguments + "plain.safetensors");
  ASSERT_EQ(plain.exit_code, 0) << plain.messages;
  std::filesystem::remove_all(folder / "runs");
  const ProgramRun stamped = run_y1(folder.path(), arguments + "stamped.safetensors --profile --trace");
  ASSERT_EQ(stamped.exit_code, 0) << stamped.messages;
  EXPECT_EQ(losses(stamped), losses(plain));
  EXPECT_EQ(largest_difference(read_safetensors(folder.path() + "/plain.safetensors"),
                               read_safetensors(folder.path() + "/stamped.safetensors")),
            0);
  EXPECT_FALSE(plain.result.contains("collectives"));
  const std::filesystem::path run = folder / "runs" / folder.list("runs").front();
  const auto program = nlohmann::ordered_json::parse(read_text(run / "program.json"));
  const auto profile = nlohmann::ordered_json::parse(read_text(run / "profile.json"));
  const auto trace = nlohmann::ordered_json::parse(read_text(run / "trace.json"));
  const std::size_t iterations = profile.at("iterations");
  EXPECT_EQ(profile.at("ops").size(), program.at("ops").size());
  EXPECT_LE(profile.at("busy_seconds").get<double>(), profile.at("iteration_seconds").get<double>());
  std::map<std::string, std::size_t> drawn;
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("ph") == "X") ++drawn[event.at("name")];
  for (const auto& op : program.at("ops")) {
    const std::string name = op.at("name");
    EXPECT_EQ(drawn[name], iterations) << name;
  }
  for (const auto& op : profile.at("ops")) EXPECT_GE(op.at("seconds").get<double>(), 0) << op;
  double reduced_bytes = 0;
  for (const auto& collective : stamped.result.at("collectives")) {
    EXPECT_EQ(drawn[collective.at("name")], iterations) << collective;
    EXPECT_GT(collective.at("bus_bytes_per_second").at("min").get<double>(), 0) << collective;
    reduced_bytes += collective.at("bytes").get<double>();
  }
  const double gradient_bytes = 4 * stamped.result.at("parameters").get<double>();
  EXPECT_GE(reduced_bytes, gradient_bytes);
  EXPECT_LE(reduced_bytes, 1.02 * gradient_bytes);  // gaps that align many small gradients
}

// Memory outside the arena: libraries, oneDNN's code, MPI's buffers, the batch on the host.
constexpr double kProcessBytes = 112.0 * (1 << 20);

TEST(TrainingRuns, PeakMemoryIsWhatThePlanSays) {
  if (!std::string(PLUMB_TEST_SANITIZERS).empty()) GTEST_SKIP() << "sanitizers hold memory of their own";
  const ScratchFolder folder;
  const ProgramRun run = run_bench_resnet50(folder.path(), "--image-size 96 --bs 16 --iters 2 --warmup 1");
  ASSERT_EQ(run.exit_code, 0) << run.messages;
  const double planned = run.result.at("memory_bytes").at("planned"),
               peak = run.result.at("memory_bytes").at("peak");
  EXPECT_LE(peak, 1.15 * planned + kProcessBytes);
  EXPECT_GE(peak, 0.85 * planned);
}

}  // namespace
}  // namespace plumb
