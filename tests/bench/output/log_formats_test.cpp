#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "bench/output/log_writer.h"
#include "results/analysis/analyze.h"
#include "tests/bench/expect_error.h"
#include "tests/bench/output/log_lines.h"
#include "tests/golden_text.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

using std::chrono::system_clock;

// A run of this many iterations in all formats.
void write_face_run(const std::string& folder, const LogCase& log_case, int iterations) {
  LogWriter log(folder, log_case, {}, kFaceFormats);
  double end_seconds = 0;
  for (int i = 0; i < iterations; ++i) {
    end_seconds += seconds_of(i);
    log.write({.iteration = i,
               .loss = 45.1,
               .top5 = std::numeric_limits<double>::quiet_NaN(),
               .learning_rate = 0.1,
               .seconds = seconds_of(i),
               .end_seconds = end_seconds},
              system_clock::now());
  }
  log.finish();
}

// Mean speed of the lines, each of `step` iterations, from `first` up to `end`.
double mean_speed(double images_per_step, int first, int end, int step) {
  double sum = 0;
  for (int i = first; i < end; i += step) {
    double seconds = 0;
    for (int k = i; k < i + step; ++k) seconds += seconds_of(k);
    sum += images_per_step * step / seconds;
  }
  return sum / ((end - first) / step);
}

double average_of(const std::string& folder, const char* format, WindowChoice window) {
  const Analysis analysis = analyze_logs(folder, {.log_format = format, .window = window});
  EXPECT_TRUE(analysis.bad.empty()) << folder;
  return analysis.cases.front().average.get<double>();
}

TEST(LogWriter, FurtherFormatsGiveTheRunsThroughput) {
  LogCase log_case = {.model = "r50", .precision = "fp32", .batch_per_device = 64, .image_size = 112};
  for (const int nodes : {1, 4}) {
    ScratchFolder folder;
    log_case.nodes = nodes;
    log_case.devices_per_node = 8;
    write_face_run(folder.path(), log_case, 150);
    const double images = 64 * 8 * nodes;
    const auto at = [&](const char* format) { return folder.path() + "/" + format; };
    // Lines are rounded: two decimals, and one for each node's speed.
    const double arcface_digits = 0.05 * nodes + 0.005;
    EXPECT_NEAR(average_of(at("mxnet_arcface"), "auto", {}), mean_speed(images, 20, 120, 20), arcface_digits);
    EXPECT_NEAR(average_of(at("mxnet_arcface"), "auto", {120, 40}), mean_speed(images, 40, 120, 20),
                arcface_digits);
    EXPECT_NEAR(average_of(at("mxnet_partial_fc"), "auto", {150, 50}), mean_speed(images, 50, 150, 1), 0.055);
    EXPECT_NEAR(average_of(at("oneflow_face"), "auto", {}), mean_speed(images, 25, 126, 1), 0.005501);
    EXPECT_NEAR(average_of(at("plsc"), "auto", {}), mean_speed(images, 50, 150, 10), 0.0101);
    EXPECT_NEAR(average_of(folder.path(), "auto", {150, 50}), mean_speed(images, 50, 150, 1), 0.0101);
  }
}

TEST(LogWriter, ANumberIsFreeInAllFormats) {
  ScratchFolder folder;
  const std::string plsc = folder.path() + "/plsc/1n1g";
  std::filesystem::create_directories(plsc);
  write_text(plsc + "/resnet50_b128_fp32_1.log", "");
  write_text(plsc + "/resnet50_b128_fp32_2.log.part", "");
  const std::vector<const LogFormat*> further = {&kPlsc};
  EXPECT_EQ(LogWriter(folder.path(), kCase, {}, further).run(), 3);
  EXPECT_EQ(LogWriter(folder.path(), kCase, {}).run(), 1);
  expect_error(ExitCode::cannot_create, {"--run 2: ", "exists already, finished or not", "another format"},
               [&] { LogWriter(folder.path(), kCase, 2, further); });
  EXPECT_TRUE(folder.list("1n1g").empty());
}

TEST(LogWriter, FormatFoldersHoldOneConfigurationEach) {
  ScratchFolder folder;
  LogCase arcface = kCase;
  arcface.head = "--head mp --classes 1000";
  const auto write_run = [&](const LogCase& log_case, const std::string& log_dir) {
    LogWriter log(log_dir, log_case, {}, {&kOneflowFace});
    write_lines(log, 1);
    log.finish();
  };
  write_run(arcface, folder.path());
  std::filesystem::remove_all(folder.path() + "/1n1g");
  arcface.head = "--head dp --classes 1000";
  expect_error(ExitCode::cannot_create, {"/oneflow_face/1n1g holds", "--head mp --classes 1000", "--head dp"},
               [&] { write_run(arcface, folder.path()); });
  EXPECT_EQ(folder.list(), std::vector<std::string>{"oneflow_face"});
}

TEST(HeadOptions, AreTheOnesThatTellRunsApart) {
  EXPECT_EQ(head_options({{"model", "resnet50"}}), "");
  EXPECT_EQ(head_options({{"head", "mp"}, {"classes", 4}, {"embedding", 128}, {"sample_rate", nullptr}}),
            "--head mp --classes 4 --embedding 128");
  EXPECT_EQ(head_options({{"head", "pfc"}, {"classes", 85742}, {"embedding", 512}, {"sample_rate", 0.1}}),
            "--head pfc --classes 85742 --embedding 512 --sample-rate 0.1");
  nlohmann::ordered_json config{
      {"precision", "fp16"}, {"prelu", "channel"}, {"head", "dp"}, {"classes", 4}, {"head_dtype", "fp32"}};
  EXPECT_EQ(head_options(config), "--head dp --classes 4");
  config["prelu"] = "layer";
  config["head_dtype"] = "same";
  EXPECT_EQ(head_options(config), "--head dp --classes 4 --prelu layer --head-dtype same");
  config["precision"] = "fp32";
  EXPECT_EQ(head_options(config), "--head dp --classes 4 --prelu layer") << "all of it is fp32";
}

TEST(LogWriter, AllLogsGetTheirNamesOrNone) {
  ScratchFolder folder;
  LogWriter log(folder.path(), kCase, {}, kFaceFormats);
  write_lines(log, 25);
  write_text(folder.path() + "/plsc/1n1g/resnet50_b128_fp32_1.log", "somebody else's");
  expect_error(ExitCode::cannot_create, {"cannot rename", "/plsc/"}, [&] { log.finish(); });
  EXPECT_EQ(folder.list("1n1g"), std::vector<std::string>{"resnet50_b128_fp32_1.log.part"});
  EXPECT_EQ(folder.list("oneflow_face/1n1g"), std::vector<std::string>{"resnet50_b128_fp32_1.log.part"});
}

TEST(LogWriter, AFormatWithoutALineLeavesNoLog) {
  ScratchFolder folder;
  {
    LogWriter log(folder.path(), kCase, {}, {&kOneflowFace, &kPlsc});
    write_lines(log, 5);
    EXPECT_EQ(log.paths().size(), 2U);
    log.finish();
  }
  EXPECT_EQ(folder.list("oneflow_face/1n1g"), std::vector<std::string>{"resnet50_b128_fp32_1.log"});
  EXPECT_TRUE(folder.list("plsc/1n1g").empty());
}

TEST(FormatsToWrite, AreThoseWithALogOfTheirOwn) {
  EXPECT_TRUE(formats_to_write("", 0).empty());
  EXPECT_TRUE(formats_to_write("paddle_speed,paddle_time,mxnet_rn50v1b", 1).empty());
  EXPECT_EQ(formats_to_write("plsc,paddle_time,mxnet_arcface,plsc", 150),
            (std::vector<const LogFormat*>{&kMxnetArcface, &kPlsc}));
  for (const char* names : {"tf", "plsc,", ",", "plsc,tf", "plsc mxnet_arcface", "auto"})
    expect_error(ExitCode::usage, {"--log-format", "oneflow_face"}, [&] { formats_to_write(names, 0); });
  expect_error(ExitCode::usage, {"--iters 9", "plsc", "at least 10"}, [] { formats_to_write("plsc", 9); });
  expect_error(ExitCode::usage, {"--iters 1", "mxnet_partial_fc", "at least 2"},
               [] { formats_to_write("mxnet_partial_fc", 1); });
}

// Of a run that doesn't count accuracy.
TEST(LogWriter, EachFormatHasItsLine) {
  const ScratchFolder folder;
  const InTimeZone utc("UTC");
  LogWriter log(folder.path(), kCase, {}, kFaceFormats);
  for (int i = 0; i < 25; ++i) {
    LogLine line = line_of(i);
    line.top5 = std::numeric_limits<double>::quiet_NaN();
    line.seconds = 0.25;
    line.end_seconds = 0.25 * (i + 1);
    log.write(line, system_clock::from_time_t(1735862390));
  }
  log.finish();
  std::string text;
  for (const std::string& path : log.paths())
    text += "== " + path.substr(folder.path().size() + 1) + "\n" + read_text(path);
  expect_golden("tables/logs.txt", text);
}

}  // namespace
}  // namespace plumb
