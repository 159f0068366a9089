#include "bench/output/summary.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/console/print.h"
#include "tests/results/run_folder.h"

namespace plumb {
namespace {

RunRecord a_record() {
  RunRecord record = example_run(80);
  record.device_name = "some cpu";
  record.iterations = 5;
  record.warmup = 2;
  record.step_seconds = {9, 9, 0.1, 0.3, 0.2};
  record.loss = {7, 6.5, 6, 5.5, 5.25};
  record.exposed_communication_seconds = 0.02;
  record.data_wait_seconds = 0.004;
  record.memory_bytes = {{"peak", 3 << 20}};
  record.checks["replicas_identical"] = true;
  record.checks["loss_finite"] = "skipped";
  record.log_files = {"logs/1n2g/resnet50_b8_fp32_1.log"};
  return record;
}

std::size_t longest_line(const std::string& table) {
  std::size_t longest = 0;
  for (std::size_t begin = 0; begin < table.size();) {
    const std::size_t end = table.find('\n', begin);
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  return longest;
}

void expect_row(const std::string& table, const std::string& name, const std::string& value) {
  const std::size_t at = table.find("\n  " + name + " ");
  ASSERT_NE(at, std::string::npos) << name << " is missing in\n" << table;
  const std::string line = table.substr(at + 1, table.find('\n', at + 1) - at - 1);
  EXPECT_NE(line.find(value), std::string::npos) << line;
}

TEST(Summary, ShowsEveryFigureOfTheWindow) {
  const std::string table = summary_table(a_record());
  EXPECT_TRUE(table.starts_with("resnet50 fp32, batch 8 per device, 1n2g, cpu: some cpu\n")) << table;
  expect_row(table, "images/s", "80.00");
  expect_row(table, "images/s per device", "40.00");
  expect_row(table, "step time, median", "200.000 ms");
  expect_row(table, "step time, spread", "120.000 to 280.000 ms (10 % to 90 %),");
  EXPECT_NE(table.find("\n                          100.000 to 300.000 ms in all\n"), std::string::npos)
      << table;
  expect_row(table, "exposed communication", "20.000 ms per step (10.0 %)");
  expect_row(table, "waiting for data", "4.000 ms per step (2.0 %)");
  expect_row(table, "peak memory", "3.0 MiB");
  expect_row(table, "loss, first and last", "7.00000, 5.25000");
  expect_row(table, "checks", "replicas_identical: yes, loss_finite: skipped");
  expect_row(table, "log", "resnet50_b8_fp32_1.log");
  EXPECT_EQ(table.find("energy"), std::string::npos);
  EXPECT_EQ(table.find("FAILED"), std::string::npos);
}

TEST(Summary, TellsWaitingForASlowRankFromTransferring) {
  RunRecord record = a_record();
  EXPECT_EQ(summary_table(record).find("transferring"), std::string::npos);
  record.ranks = {{"n1", 0.02, 0.18, 0}, {"n2", 0.004, 0.196, 0}};
  const std::string table = summary_table(record);
  expect_row(table, "exposed communication", "20.000 ms per step (10.0 %) on rank 0");
  expect_row(table, "  transferring", "4.000 ms per step (2.0 %) on every rank");
  expect_row(table, "  for the slowest rank", "16.000 ms per step (8.0 %) on the others");
  EXPECT_NE(table.find("rank 1 on n2 computes 196 ms a step"), std::string::npos) << table;
  record.ranks[1] = {"n2", 0.0195, 0.1805, 0};
  EXPECT_EQ(summary_table(record).find("rank 1 on n2"), std::string::npos) << "an even run";
}

TEST(Summary, SharesAreOfTheMeanStepAsAStallIsInBoth) {
  RunRecord record = a_record();
  record.step_seconds = {9, 9, 0.3, 15.3, 0.3};
  record.exposed_communication_seconds = 5.1;
  const std::string table = summary_table(record);
  expect_row(table, "exposed communication", "5100.000 ms per step (96.2 %)");
  EXPECT_NE(table.find("the run stalled: iteration 3 took 15.3 s"), std::string::npos) << table;
}

TEST(Summary, ShowsBytesSentAndTheBandwidthReached) {
  RunRecord record = a_record();
  record.sent_bytes_per_step = 102'228'128;
  expect_row(summary_table(record), "sent per rank", "102.23 MB per step; --profile times it");
  record.bus_bytes_per_second = 1.424e9;
  expect_row(summary_table(record), "sent per rank", "102.23 MB per step at 1.42 GB/s bus bandwidth");
}

TEST(Summary, ShowsTheShareOfTheProbedBandwidthAndTheTimeByTheProbedLinks) {
  RunRecord record = a_record();
  record.sent_bytes_per_step = 102'228'128;
  record.probed_bytes_per_second = 0.12e9;
  record.modeled_communication_seconds = 0.8522;
  expect_row(summary_table(record), "exchange", "852.200 ms by the probed links");
  record.bus_bytes_per_second = 0.11e9;
  const std::string table = summary_table(record);
  expect_row(table, "sent per rank", "102.23 MB per step at 0.11 GB/s bus bandwidth, 92 %");
  EXPECT_NE(table.find("the 0.12 GB/s that the probe found over MPI"), std::string::npos) << table;
  expect_row(table, "exchange", "929.347 ms per step under way, 852.200 ms by the");
  EXPECT_LE(longest_line(table), 80u) << table;
}

TEST(Summary, ShowsTheBusBandwidthWhereItWasMeasured) {
  RunRecord record = a_record();
  const std::vector<double> slow{0.02, 0.02}, fast{0.01, 0.01};
  record.collectives = {collective_record("bucket0.allreduce", "allreduce_sum", 50'000'000, fast),
                        collective_record("bucket1.allreduce", "allreduce_sum", 50'000'000, slow)};
  expect_row(summary_table(record), "bus bandwidth", "2.50 to 5.00 GB/s in 2 collectives, the slowest is");
  EXPECT_EQ(summary_table(a_record()).find("bus bandwidth"), std::string::npos);
}

TEST(Summary, EndsWithThePublishedNumbersOfTheNearestConfigurations) {
  RunRecord record = a_record();
  EXPECT_EQ(summary_table(record).find("published"), std::string::npos) << "of GPUs, beside a CPU";
  record.device = "cuda";
  record.device_name = "Tesla V100-SXM2-16GB (sm_70)";
  const std::string table = summary_table(record);
  expect_row(table, "published, nearest", "768.00 images/s, NGC MXNet: ImageNet, batch 96");
  EXPECT_NE(table.find("images/s, MindSpore: "), std::string::npos) << table;
  EXPECT_LE(longest_line(table), 80u) << table;
}

TEST(Summary, BreaksNoWordOnNarrowTerminals) {
  RunRecord record = a_record();
  record.device_name = "Intel(R) Xeon(R) Processor, 2 threads, oneDNN 2.6.3";
  record.log_files = {"logs/4n8g/a_long_name.log"};
  for (const std::size_t columns : {80u, 60u, 51u}) {
    const std::string table = summary_table(record, columns);
    EXPECT_LE(longest_line(table), columns) << table;
    EXPECT_NE(table.find("Processor,"), std::string::npos) << table;
    EXPECT_NE(table.find(" logs/4n8g/a_long_name.log\n"), std::string::npos) << table;
  }
  EXPECT_EQ(table_columns({.is_terminal = true, .columns = 60}), 60u);
  EXPECT_EQ(table_columns({.is_terminal = true, .columns = 200}), 80u);
  EXPECT_EQ(table_columns({.is_terminal = true, .columns = 1}), 40u);
  EXPECT_EQ(table_columns({.is_terminal = false, .columns = 60}), 80u);
}

TEST(Summary, AnInterruptedRunShowsItsStepsAndNoThroughput) {
  RunRecord record = a_record();
  record.status = "failed";
  record.failure = "interrupted by SIGINT after 5 of 120 iterations";
  record.iterations = 120;
  const std::string table = summary_table(record);
  expect_row(table, "INTERRUPTED", "by SIGINT after 5 of 120 iterations: no score");
  expect_row(table, "iterations", "5, warm-up 2");
  expect_row(table, "step time, median", "200.000 ms");
  for (const char* absent : {"images/s", "FAILED", "exposed", "published"})
    EXPECT_EQ(table.find(absent), std::string::npos) << table;
}

TEST(Summary, ASigtermAmongRanksMayBeTheLaunchers) {
  RunRecord record = a_record();
  record.status = "failed";
  record.failure = "interrupted by SIGTERM after 5 of 120 iterations";
  record.world_size = 2;
  EXPECT_NE(summary_table(record).find("by the launcher"), std::string::npos) << summary_table(record);
  EXPECT_LE(longest_line(summary_table(record)), 80u);
  record.world_size = 1;
  EXPECT_EQ(summary_table(record).find("launcher"), std::string::npos) << "there is no other rank";
  record.world_size = 2;
  record.failure = "interrupted by SIGINT after 5 of 120 iterations";
  EXPECT_EQ(summary_table(record).find("launcher"), std::string::npos) << "launchers send no SIGINT";
}

TEST(Summary, ShowsPublishedNumbersOfTheSameGpuAlsoPerDevice) {
  RunRecord record = a_record();
  record.device = "cuda";
  record.device_name = "NVIDIA H200 (sm_90)";
  record.precision = "fp16";
  record.batch_per_device = 400;
  record.world_size = record.devices_per_node = 1;
  const std::string table = summary_table(record);
  expect_row(table, "published, nearest", "6790.24 images/s, PyTorch: batch 256");
  EXPECT_NE(table.find(" 63559.40 images/s (7944.93 per device), MLPerf MXNet:\n"), std::string::npos)
      << table;
}

TEST(Summary, ShowsNoPublishedNumbersForAFailedRunOrAnUnknownModel) {
  RunRecord record = a_record();
  record.model = "vgg16";
  EXPECT_EQ(summary_table(record).find("published"), std::string::npos);
  record = a_record();
  record.status = "failed";
  EXPECT_EQ(summary_table(record).find("published"), std::string::npos);
}

TEST(Summary, ShowsEnergyAndWarnsOfThrottledGpus) {
  RunRecord record = a_record();
  record.energy_joules_per_image = 0.0876;
  record.gpus.resize(2);
  record.gpus[1].rank = 1;
  EXPECT_EQ(summary_table(record).find("THROTTLED"), std::string::npos);
  record.gpus[1].throttled_share = 0.5;
  record.gpus[1].throttle_reasons["thermal"] = 0.5;
  const std::string table = summary_table(record);
  expect_row(table, "energy per image", "0.088 J");
  expect_row(table, "THROTTLED", "rank 1's GPU was throttled in 50 % of the window");
}

TEST(Summary, AFailedRunSaysSoAndNeedsNoSamples) {
  RunRecord record;
  record.failure = "the disk is full";
  const std::string table = summary_table(record);
  expect_row(table, "FAILED", "the disk is full");
  EXPECT_EQ(table.find("images/s"), std::string::npos);
}

TEST(Summary, JsonIsOneObject) {
  testing::internal::CaptureStdout();
  print_result(a_record(), true);
  const auto json = nlohmann::ordered_json::parse(testing::internal::GetCapturedStdout());
  EXPECT_EQ(json.at("schema"), kResultSchema);
  EXPECT_EQ(json.at("step_seconds").size(), 5U);
}

TEST(Summary, LossScaleShowsItsChangesAndWhatWasSkipped) {
  RunRecord record;
  record.loss_scale = {65536, 32768, 16384, 16384};
  record.skipped_iterations = 2;
  const std::string table = summary_table(record);
  EXPECT_NE(table.find("65536, 32768 from iteration 1, 16384 from iteration 2;\n                          2 "
                       "iterations skipped\n"),
            std::string::npos)
      << table;
  EXPECT_EQ(summary_table(RunRecord{}).find("loss scale"), std::string::npos);
}

}  // namespace
}  // namespace plumb
