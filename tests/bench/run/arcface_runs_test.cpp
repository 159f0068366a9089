// Whole runs of bench_arcface with MobileFaceNet: heads and world sizes agree; weights, logs and records
// round-trip; impossible runs are rejected.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "models/weights.h"
#include "tests/bench/image_files.h"
#include "tests/bench/record_files.h"
#include "tests/bench/run/program_runs.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kClasses = 37, kEmbedding = 128, kImages = 4;
constexpr std::int64_t kPixels = 112;

double sum(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::vector<double> numbers(const ProgramRun& run, const char* key) {
  return run.result.at(key).get<std::vector<double>>();
}

void expect_tensor_near(const Tensor& tensor, const Tensor& wanted, float tolerance) {
  ASSERT_EQ(tensor.dims, wanted.dims);
  for (std::size_t i = 0; i < tensor.values.size(); ++i)
    ASSERT_NEAR(tensor.values[i], wanted.values[i], tolerance) << "at " << i;
}

class ArcFaceRuns : public testing::Test {
 protected:
  ProgramRun run(int ranks, const std::string& arguments) {
    return run_program(folder_.path(), ranks, PLUMB_BENCH_ARCFACE,
                       "--threads 1 --json --backbone y1 --seed 7 " + arguments);
  }
  ProgramRun run_few(int ranks, const std::string& arguments) {
    return run(ranks, "--iters 2 --warmup 1 --classes " + std::to_string(kClasses) + " " + arguments);
  }
  ProgramRun run_well(int ranks, const std::string& arguments) {
    ProgramRun done = run_few(ranks, arguments);
    EXPECT_EQ(done.exit_code, 0) << arguments << '\n' << done.messages;
    return done;
  }
  void expect_refused(ExitCode code, int ranks, const std::string& arguments,
                      const std::vector<std::string>& words) {
    SCOPED_TRACE(arguments);
    const ProgramRun refused = run_few(ranks, "--bs 2 " + arguments);
    EXPECT_EQ(refused.exit_code, static_cast<int>(code));
    for (const std::string& word : words)
      EXPECT_NE(refused.messages.find(word), std::string::npos) << word << " in:\n" << refused.messages;
    EXPECT_EQ(refused.output, "");
  }
  // Smooth patterns, labels spread over all classes.
  void write_batch(const std::string& name, const std::vector<std::int64_t>& labels) const {
    TensorFile tensors;
    Tensor& images = tensors.floats["images"];
    images.dims = {kImages, 3, kPixels, kPixels};
    images.values.resize(static_cast<std::size_t>(kImages * 3 * kPixels * kPixels));
    for (std::size_t i = 0; i < images.values.size(); ++i)
      images.values[i] = static_cast<float>(std::sin(1e-6 * static_cast<double>(i) * static_cast<double>(i)));
    tensors.integers["labels"] = {{kImages}, labels};
    write_safetensors(folder_ / name, tensors);
  }
  void write_records(const Packed& packed) const {
    write_file(folder_ / "x.rec", packed.records);
    write_text(folder_ / "x.idx", packed.index);
  }
  TensorFile weights(const std::string& name) const { return read_safetensors(folder_ / name); }
  // Images/s of the only case, as `plumbline analyze` prints it.
  double analyzed(const std::string& dialect, const std::string& window) const {
    const ProgramRun done = run_program(
        folder_.path(), 1, PLUMB_PLUMBLINE,
        "analyze logs/" + dialect + " --dialect " + dialect + " " + window + " --json " + dialect + ".json");
    EXPECT_EQ(done.exit_code, 0) << done.messages;
    const Json json = Json::parse(read_text(folder_ / (dialect + ".json")), nullptr, false);
    return json.at("y1").at("1n2g").at("average_speed");
  }

  ScratchFolder folder_;
};

// All ranks get the same images, so every mean equals a single rank's.
TEST_F(ArcFaceRuns, HeadsAndRanksAgreeOnTheSameBatch) {
  write_batch("batch", {0, 18, 19, 36});
  const std::string same = "--bs 4 --lr 0.001 --batch-file batch --head ";
  const ProgramRun one = run_well(1, same + "dp --save-weights dp_1");
  const TensorFile wanted = weights("dp_1");
  ASSERT_EQ(wanted.floats.at("head.weight").dims, (std::vector<std::int64_t>{kClasses, kEmbedding}));
  for (const std::string head : {"mp", "pfc --sample-rate 1"}) {
    SCOPED_TRACE(head);
    const std::string name = head.substr(0, head.find(' ')) + "_2";
    const ProgramRun two = run_well(2, same + head + " --save-weights " + name + " --log-dir logs_" + name);
    EXPECT_TRUE(two.result.at("checks").at("replicas_identical").get<bool>());
    expect_near(numbers(two, "loss"), numbers(one, "loss"), 1e-5);
    const TensorFile found = weights(name);
    // They move by 0.06 and 0.07; norms over 4 images amplify rounding on the way to the first layer.
    expect_tensor_near(found.floats.at("head.weight"), wanted.floats.at("head.weight"), 1e-5F);
    expect_tensor_near(found.floats.at("conv_1_conv2d.weight"), wanted.floats.at("conv_1_conv2d.weight"),
                       1e-3F);
  }
}

TEST_F(ArcFaceRuns, ASampleOfTheClassesTrainsOnAnyNumberOfRanks) {
  for (const int ranks : {1, 2}) {
    const ProgramRun done = run_well(ranks, "--bs 2 --head pfc --log-dir logs_" + std::to_string(ranks));
    const std::vector<double> losses = numbers(done, "loss");
    EXPECT_EQ(losses.size(), 2U);
    EXPECT_NE(losses.front(), losses.back());
    EXPECT_EQ(done.result.at("config").at("sample_rate"), 0.1);
  }
}

TEST_F(ArcFaceRuns, SavedWeightsGoOnOnAnotherNumberOfRanks) {
  write_batch("batch", {3, 14, 15, 36});
  const std::string same = "--bs 4 --lr 0.001 --batch-file batch --head mp ";
  const double fresh = numbers(run_well(1, same + "--save-weights of_one"), "loss").front();
  run_well(2, same + "--save-weights of_two --log-dir two");
  ASSERT_EQ(weights("of_two").floats.at("head.weight").dims,
            (std::vector<std::int64_t>{kClasses, kEmbedding}));
  for (const std::string name : {"of_one", "of_two"}) {
    SCOPED_TRACE(name);
    const std::string from = same + "--weights " + name;
    const ProgramRun one = run_well(1, from), two = run_well(2, from + " --log-dir two");
    expect_near(numbers(two, "loss"), numbers(one, "loss"), 1e-4);
    EXPECT_LT(numbers(one, "loss").front(), fresh) << "weights that have been trained";
  }
}

TEST_F(ArcFaceRuns, LogsOfEveryDialectGiveTheSpeedOfTheResult) {
  const ProgramRun done = run(
      2,
      "--bs 1 --classes 9 --iters 20 --warmup 10 --dialect plsc,oneflow_face,mxnet_arcface,mxnet_partial_fc");
  ASSERT_EQ(done.exit_code, 0) << done.messages;
  EXPECT_EQ(done.result.at("log_files").size(), 5U);
  const std::vector<double> seconds = numbers(done, "step_seconds");
  const auto images_per_second = [&](std::size_t begin, std::size_t end) {
    return 2 * static_cast<double>(end - begin) / sum(std::span(seconds).subspan(begin, end - begin));
  };
  const auto mean_of_iterations = [&](std::size_t begin, std::size_t end) {
    double total = 0;
    for (std::size_t i = begin; i < end; ++i) total += images_per_second(i, i + 1);
    return total / static_cast<double>(end - begin);
  };
  // Tolerance: half a unit of a line's last digit (MXNet's scripts: the first decimal) plus half a hundredth.
  EXPECT_NEAR(analyzed("plsc", "--iters 20 --warmup 10"), images_per_second(10, 20), 0.011);
  EXPECT_NEAR(analyzed("mxnet_arcface", "--iters 20 --warmup 0"), images_per_second(0, 20), 0.06);
  EXPECT_NEAR(analyzed("mxnet_partial_fc", "--iters 20 --warmup 10"), mean_of_iterations(10, 20), 0.06);
  // Lines 4 to 14 after iteration 5.
  EXPECT_NEAR(analyzed("oneflow_face", "--iters 14 --warmup 4"), mean_of_iterations(9, 20), 0.011);
}

TEST_F(ArcFaceRuns, ResultSaysWhatWasTrained) {
  const ProgramRun done =
      run_well(2, "--bs 2 --head pfc --sample-rate 0.5 --loss cosface --margin-gradient straight-through");
  EXPECT_EQ(done.result.at("model"), "y1");
  EXPECT_EQ(done.result.at("parameters"), 1'003'264);
  EXPECT_EQ(done.result.at("macs_per_image"), 220'965'376);
  EXPECT_EQ(done.result.at("head_parameters"), kClasses * kEmbedding);
  EXPECT_GT(done.result.at("head_macs_per_image"), 0);
  EXPECT_EQ(done.result.at("config").at("margins"), Json({1, 0, 0.4}));
  for (const auto& [check, holds] : done.result.at("checks").items()) EXPECT_EQ(holds, true) << check;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "logs/1n2g/y1_b2_fp32_1.log"));
}

TEST_F(ArcFaceRuns, ACaseFolderHoldsRunsOfOneHead) {
  run_well(1, "--bs 2 --head mp");
  expect_refused(ExitCode::cannot_create, 1, "--head dp",
                 {"--log-dir", "logs/1n1g", "--head mp --classes 37", "--head dp"});
  run_well(1, "--bs 2 --head mp");
  EXPECT_EQ(folder_.list("logs/1n1g"), (std::vector<std::string>{"y1_b2_fp32_1.log", "y1_b2_fp32_2.log"}));
}

TEST_F(ArcFaceRuns, WeightsOfOtherClassesAreRefused) {
  run_well(1, "--bs 2 --save-weights w");
  for (const int ranks : {1, 2}) {
    const ProgramRun refused = run(ranks, "--bs 2 --iters 2 --warmup 1 --classes 36 --weights w");
    EXPECT_EQ(refused.exit_code, static_cast<int>(ExitCode::bad_data));
    for (const char* word : {"--weights", "head.weight", "37", "36", "--classes 37"})
      EXPECT_NE(refused.messages.find(word), std::string::npos) << word << " in:\n" << refused.messages;
  }
}

TEST_F(ArcFaceRuns, RecordsOfInsightFaceTrainAndCorruptOnesAreCounted) {
  Packed packed = faces(12);
  packed.records[packed.offsets[5]] ^= 0x10;  // its magic number
  write_records(packed);
  const ProgramRun done = run(1, "--bs 4 --iters 6 --warmup 1 --classes 2 --data x.rec");
  ASSERT_EQ(done.exit_code, 0) << done.messages;
  EXPECT_NE(done.messages.find("skipped 1 corrupt image"), std::string::npos) << done.messages;
  EXPECT_NE(done.messages.find("x.rec: record 5 at offset"), std::string::npos) << done.messages;
  for (const double loss : numbers(done, "loss")) EXPECT_TRUE(std::isfinite(loss));
}

TEST_F(ArcFaceRuns, RanksWithoutAClassAreRefused) {
  const ProgramRun refused = run(2, "--bs 2 --classes 1 --head mp");
  EXPECT_EQ(refused.exit_code, static_cast<int>(ExitCode::usage));
  for (const char* word : {"--classes 1", "2 ranks", "--head dp"})
    EXPECT_NE(refused.messages.find(word), std::string::npos) << word << " in:\n" << refused.messages;
}

TEST_F(ArcFaceRuns, MoreClassesThanMemoryAreRefused) {
  const ProgramRun refused = run(1, "--bs 2 --classes 2147483647");
  EXPECT_EQ(refused.exit_code, static_cast<int>(ExitCode::out_of_memory));
  for (const char* word : {"not even --bs 1 fits", "fewer --classes"})
    EXPECT_NE(refused.messages.find(word), std::string::npos) << word << " in:\n" << refused.messages;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
}

TEST_F(ArcFaceRuns, ALossThatIsNoNumberIsNoMeasurement) {
  const ProgramRun failed = run_few(2, "--bs 2 --lr 1e30");
  EXPECT_EQ(failed.exit_code, static_cast<int>(ExitCode::verification_failed));
  EXPECT_NE(failed.messages.find("--lr"), std::string::npos) << failed.messages;
  EXPECT_EQ(failed.result.at("status"), "failed");
}

}  // namespace
}  // namespace plumb
