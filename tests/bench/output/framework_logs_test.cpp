// Writes a run as logs of the frameworks that train ResNet-50 and reads it back: the reader must give the
// run's own throughput, to the digits printed.
#include <gtest/gtest.h>

#include <cmath>

#include "bench/output/log_writer.h"
#include "results/analysis/analyze.h"
#include "tests/bench/output/log_lines.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

using std::chrono::system_clock;

constexpr std::int64_t kBatch = 128;

double seconds_between(std::int64_t first, std::int64_t end) {
  double seconds = 0;
  for (std::int64_t i = first; i < end; ++i) seconds += seconds_of(i);
  return seconds;
}

// The log passes midnight.
void write_run(const std::string& folder, int nodes, int devices, std::int64_t iterations) {
  const std::vector<const LogFormat*> formats = formats_to_write(
      iterations < 600 ? "ngc_mxnet_speed,ngc_tf_speed,ngc_pytorch_time,pytorch,mindspore,oneflow_cnn"
                       : "tf2_speed",
      iterations);
  const LogCase log_case{.model = "resnet50",
                         .precision = "fp16",
                         .batch_per_device = kBatch,
                         .nodes = nodes,
                         .devices_per_node = devices};
  LogWriter log(folder, log_case, {}, formats);
  const system_clock::time_point start = system_clock::from_time_t(1735862385);  // 2025-01-02 23:59:45 UTC
  for (std::int64_t i = 0; i < iterations; ++i)
    log.write({.iteration = i,
               .loss = 7,
               .top1 = 0.01,
               .learning_rate = 0.1,
               .seconds = seconds_of(i),
               .end_seconds = seconds_between(0, i + 1)},
              start);
  log.finish();
}

struct Reading {
  std::string written, format;
  std::int64_t iterations = 0, first = 0, end = 0;  // of the run; the window
  double tolerance = 0;                             // of the throughput
};

class FrameworkLog : public testing::TestWithParam<Reading> {};
// Speeds have 2 decimals, timestamps 3 or 6 of a second, times 3 of a second (PyTorch) or of a millisecond.
INSTANTIATE_TEST_SUITE_P(Formats, FrameworkLog,
                         testing::Values(Reading{"ngc_mxnet_speed", "ngc_mxnet_speed", 120, 20, 120, 1e-3},
                                         Reading{"ngc_mxnet_speed", "ngc_mxnet_time", 120, 20, 120, 1e-4},
                                         Reading{"ngc_tf_speed", "ngc_tf_speed", 120, 20, 120, 1e-3},
                                         Reading{"ngc_tf_speed", "ngc_tf_time", 120, 21, 120, 2e-5},
                                         Reading{"ngc_pytorch_time", "ngc_pytorch_time", 125, 25, 125, 2e-5},
                                         Reading{"pytorch", "pytorch", 126, 26, 126, 5e-4},
                                         Reading{"mindspore", "mindspore", 120, 20, 120, 2e-5},
                                         Reading{"oneflow_cnn", "oneflow_cnn", 120, 20, 120, 2e-5},
                                         Reading{"tf2_speed", "tf2_speed", 600, 100, 600, 5e-5}),
                         [](const auto& reading) { return reading.param.format; });

TEST_P(FrameworkLog, GivesTheRunsThroughput) {
  const InTimeZone utc("UTC");
  const Reading& reading = GetParam();
  for (const auto& [nodes, devices] : {std::pair{1, 1}, {2, 4}}) {
    const ScratchFolder folder;
    write_run(folder.path(), nodes, devices, reading.iterations);
    const auto average_of = [&](const std::string& format) {
      const Analysis analysis = analyze_logs(folder.path() + "/" + reading.written, {.log_format = format});
      EXPECT_TRUE(analysis.bad.empty());
      EXPECT_EQ(analysis.log_format, reading.format);
      return analysis.cases.front().average.get<double>();
    };
    const double images = static_cast<double>(kBatch * nodes * devices * (reading.end - reading.first));
    const double wanted = images / seconds_between(reading.first, reading.end);
    const double average = average_of(reading.format);
    EXPECT_NEAR(average, wanted, wanted * reading.tolerance);
    if (!find_log_format(reading.format)->shares_lines) {
      EXPECT_EQ(average_of("auto"), average);
    }
  }
}

TEST(FrameworkLog, OfOverMidnightGivesTheThroughputToTheReaderOfTimes) {
  const InTimeZone utc("UTC");
  const ScratchFolder folder;
  write_run(folder.path(), 1, 1, 600);
  const Analysis analysis = analyze_logs(folder.path() + "/tf2_speed", {.log_format = "tf2_time"});
  const double wanted = kBatch * 500 / seconds_between(100, 600);
  EXPECT_NEAR(analysis.cases.at(0).average.get<double>(), wanted, wanted * 2e-5);
}

// Formats that can read a default run of 120 iterations; TensorFlow 2 prints one line for them.
TEST(FrameworkLog, OfADefaultRunCanBeReadWithAWindowThatItHas) {
  const ScratchFolder folder;
  write_run(folder.path(), 1, 1, 120);
  for (const char* format :
       {"ngc_mxnet_speed", "ngc_tf_speed", "ngc_pytorch_time", "pytorch", "mindspore", "oneflow_cnn"}) {
    const bool is_after_five = std::string(format).find("pytorch") != std::string::npos;
    const Analysis analysis =
        analyze_logs(folder.path() + "/" + format, {.window = {.iterations = is_after_five ? 114 : 120}});
    EXPECT_EQ(analysis.log_format, format);
    EXPECT_TRUE(analysis.bad.empty());
    EXPECT_NEAR(analysis.cases.at(0).average.get<double>(), 512, 3);
  }
}

}  // namespace
}  // namespace plumb
