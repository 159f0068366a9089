// NVIDIA's containers, PyTorch, TensorFlow 2, MindSpore and OneFlow's ResNet-50: lines in the window, lines
// that belong together, and text that isn't a log line.
#include <gtest/gtest.h>

#include "results/formats/dialect.h"
#include "tests/results/dialect_sets.h"
#include "tests/results/synthetic_log.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

using Lines = std::vector<std::string>;

LogReading read_sized(const Dialect& dialect, const std::string& text, const RunSize& size,
                      std::optional<Window> window = {}) {
  const ScratchFolder folder;
  return read_log(dialect, folder.write("a.log", text), window.value_or(dialect.default_window), size);
}

void expect_flaw(Flaw flaw, const std::string& words, const LogReading& log) {
  ASSERT_TRUE(log.defect) << words;
  EXPECT_EQ(flaw_name(log.defect->flaw), flaw_name(flaw)) << log.defect->reason;
  EXPECT_NE(log.defect->reason.find(words), std::string::npos) << log.defect->reason;
}

// An example log of one device, 128 images per step.
constexpr RunSize kOneDevice{.images_per_step = 128};
std::string example(const std::string& set, const std::string& case_name = "1n1g") {
  return file_text(kDialectData / set / case_name / "rn50_b128_fp32_1.log");
}

std::string ngc_mxnet_line(int batch, double images_per_second) {
  char text[128];
  std::snprintf(text, sizeof text,
                "2020-08-01 10:%02d:%02d,500:INFO: Epoch[0] Batch [%d-%d]\tSpeed: %.2f samples/sec\tLR: 0.1",
                batch / 60, batch % 60, batch, batch, images_per_second);
  return text;
}

TEST(NgcMxnet, TakesTheMedianOfTheRanksOfEachIterationEvenIfALineComesLate) {
  Lines lines;
  for (int i = 0; i < 120; ++i)
    for (const double speed : {500.0, 510.0, 520.0, 9000.0}) lines.push_back(ngc_mxnet_line(i, i + speed));
  const RunSize size{.images_per_step = 512, .nodes = 2, .devices_per_node = 2};
  const LogReading whole = read_sized(kNgcMxnetSpeed, joined(lines), size);
  ASSERT_FALSE(whole.defect) << whole.defect->reason;
  EXPECT_EQ(whole.images_per_second, 515 + 69.5);
  EXPECT_EQ(whole.caveat, "");
  std::swap(lines[4 * 50 + 3], lines[4 * 50 + 4]);
  const LogReading late = read_sized(kNgcMxnetSpeed, joined(lines), size);
  ASSERT_FALSE(late.defect) << late.defect->reason;
  EXPECT_EQ(late.images_per_second, whole.images_per_second);
  EXPECT_NE(late.caveat.find("1 lines stand behind"), std::string::npos) << late.caveat;
  EXPECT_EQ(read_sized(kNgcMxnetTime, joined(lines), size).images_per_second, 512);
}

TEST(NgcMxnet, RefusesALogInWhichARankIsMissingOrTwice) {
  const RunSize size{.images_per_step = 512, .nodes = 2, .devices_per_node = 2};
  Lines lines;
  for (int i = 0; i < 120; ++i)
    for (int rank = 0; rank < 4; ++rank) lines.push_back(ngc_mxnet_line(i, 500));
  Lines missing = lines;
  missing.erase(missing.begin() + 4 * 80);
  expect_flaw(Flaw::truncated, "iteration 80 has 3 lines", read_sized(kNgcMxnetSpeed, joined(missing), size));
  expect_flaw(Flaw::mixed, "neither one nor one of each rank",
              read_sized(kNgcMxnetSpeed, joined(lines), {.images_per_step = 384, .devices_per_node = 3}));
}

TEST(NgcMxnetTime, SaysThatTheScriptWantsALineOfEveryRank) {
  Lines lines;
  for (int i = 0; i < 120; ++i) lines.push_back(ngc_mxnet_line(i, 500));
  const LogReading log =
      read_sized(kNgcMxnetTime, joined(lines), {.images_per_step = 256, .devices_per_node = 2});
  ASSERT_FALSE(log.defect) << log.defect->reason;
  EXPECT_EQ(log.images_per_second, 256);
  EXPECT_NE(log.caveat.find("published script counts 2 lines as one"), std::string::npos);
}

TEST(NgcTf, WantsAWarmUpOfAtLeastTheUnloggedIterations) {
  EXPECT_EQ(kNgcTfSpeed.lowest_warmup, 20);
  const std::string text = example("ngc_tf");
  const LogReading all = read_sized(kNgcTfSpeed, text, kOneDevice, Window{.iterations = 120, .warmup = 20});
  const LogReading less = read_sized(kNgcTfSpeed, text, kOneDevice, Window{.iterations = 120, .warmup = 119});
  ASSERT_FALSE(all.defect || less.defect);
  EXPECT_NE(all.images_per_second, less.images_per_second);
}

TEST(Pytorch, PassesOverIterationsZeroToFive) {
  Lines lines;
  for (int i = 0; i < 126; ++i)
    lines.push_back("Epoch: [0][" + std::to_string(i) + "/126]\tTime  " + (i < 26 ? "9.000" : "0.250") +
                    " ( 0.300)\tData  0.000 ( 0.000)");
  const LogReading log = read_sized(kPytorch, joined(lines), kOneDevice);
  ASSERT_FALSE(log.defect) << log.defect->reason;
  EXPECT_EQ(log.images_per_second, 512);
  lines.pop_back();
  expect_flaw(Flaw::truncated, "125 of the 126", read_sized(kPytorch, joined(lines), kOneDevice));
}

std::string tf2_log(const std::vector<std::string>& stamps, int steps = 100) {
  std::string text;
  int first = 0;
  for (const std::string& stamp : stamps) {
    text += "I" + stamp +
            " 7 keras_utils.py:145] TimeHistory: 25.00 seconds, 512.00 examples/second between steps " +
            std::to_string(first) + " and " + std::to_string(first + steps) + "\n";
    first += steps;
  }
  return text;
}

TEST(Tf2Time, CountsOverMidnightTheYearsEndAndTheEndOfFebruary) {
  const Window window{.iterations = 300, .warmup = 100};
  for (const auto& [before, after] :
       {std::pair{"0801", "0802"}, {"1231", "0101"}, {"0228", "0301"}, {"0229", "0301"}}) {
    const std::string text =
        tf2_log({std::string(before) + " 23:59:40.000000", std::string(after) + " 00:00:05.000000",
                 std::string(after) + " 00:00:30.000000"});
    const LogReading log = read_sized(kTf2Time, text, kOneDevice, window);
    ASSERT_FALSE(log.defect) << log.defect->reason;
    EXPECT_EQ(log.images_per_second, 512);
    EXPECT_NE(log.caveat.find("midnight"), std::string::npos);
  }
  expect_flaw(Flaw::malformed, "earlier stamp",
              read_sized(kTf2Time, tf2_log({"0801 10:00:00.0", "0801 09:59:00.0", "0801 10:02:00.0"}),
                         kOneDevice, window));
}

TEST(Tf2Speed, CountsStepsWhateverALinesNumberOfThem) {
  std::vector<std::string> stamps(30, "0801 10:00:00.000000");
  const LogReading log = read_sized(kTf2Speed, tf2_log(stamps, 20), kOneDevice);
  ASSERT_FALSE(log.defect) << log.defect->reason;
  EXPECT_NE(log.caveat.find("a line is of 20 steps"), std::string::npos);
  expect_flaw(Flaw::malformed, "lines are of 30 iterations",
              read_sized(kTf2Speed, tf2_log(stamps, 30), kOneDevice));
  stamps.resize(29);
  expect_flaw(Flaw::truncated, "29 of the 30", read_sized(kTf2Speed, tf2_log(stamps, 20), kOneDevice));
}

std::string mindspore_log(int epochs, int steps, int ranks) {
  std::string text;
  for (int i = 1; i <= epochs; ++i) {
    for (int rank = 0; rank < ranks; ++rank)
      text += "epoch: " + std::to_string(i) + " step: " + std::to_string(steps) + ", loss is 7.0\n";
    for (int rank = 0; rank < ranks; ++rank)
      text += "epoch time: " + std::to_string(250 * steps) + ".000 ms, per step time: 250.000 ms\n";
  }
  return text;
}

TEST(Mindspore, CountsIterationsWhateverAnEpochsNumberOfThem) {
  const RunSize size{.images_per_step = 256, .devices_per_node = 2};
  for (const int steps : {1, 2, 10}) {
    const LogReading log = read_sized(kMindspore, mindspore_log(120 / steps, steps, 2), size);
    ASSERT_FALSE(log.defect) << log.defect->reason;
    EXPECT_EQ(log.images_per_second, 1024);
    EXPECT_EQ(log.caveat, "");
  }
  expect_flaw(Flaw::malformed, "lines are of 30 iterations",
              read_sized(kMindspore, mindspore_log(4, 30, 2), size));
  const LogReading cut =
      read_sized(kMindspore, mindspore_log(30, 4, 1), size, Window{.iterations = 118, .warmup = 20});
  ASSERT_FALSE(cut.defect) << cut.defect->reason;
  EXPECT_EQ(cut.images_per_second, 1024);
  EXPECT_NE(cut.caveat.find("2 times too high, and an epoch is of 4 iterations"), std::string::npos)
      << cut.caveat;
}

}  // namespace
}  // namespace plumb
