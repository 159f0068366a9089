#include <gtest/gtest.h>

#include "base/console/print.h"
#include "base/text.h"
#include "bench/output/result_writer.h"
#include "tests/golden_text.h"
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

// Tables as they are printed, none wider than the terminal.
class Tables {
 public:
  void add(const std::string& title, const RunRecord& record) {
    const std::string table = summary_table(record, reference_speeds());
    for (const std::string& line : split(table, '\n')) EXPECT_LE(line.size(), 80u) << line;
    text_ += "== " + title + "\n" + table;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

TEST(Summary, OfFinishedRuns) {
  Tables tables;
  RunRecord record = a_record();
  tables.add("two ranks on a CPU", record);
  record.ranks = {{"n1", 0.02, 0.18, 0}, {"n2", 0.004, 0.196, 0}};
  tables.add("a slow rank", record);
  record.ranks[1] = {"n2", 0.0195, 0.1805, 0};
  tables.add("even ranks", record);
  record = a_record();
  record.step_seconds = {9, 9, 0.3, 15.3, 0.3};
  record.exposed_communication_seconds = 5.1;
  tables.add("a stall, which is in the mean step, too", record);
  record = a_record();
  record.energy_joules_per_image = 0.0876;
  record.gpus.resize(2);
  record.gpus[1].rank = 1;
  tables.add("energy", record);
  record.gpus[1].throttled_share = 0.5;
  record.gpus[1].throttle_reasons["thermal"] = 0.5;
  tables.add("a throttled GPU", record);
  record = a_record();
  record.loss_scale = {65536, 32768, 16384, 16384};
  record.skipped_iterations = 2;
  tables.add("a loss scale that falls", record);
  record = a_record();
  record.device_name = "Intel(R) Xeon(R) Processor, 2 threads, oneDNN 2.6.3";
  record.log_files = {"logs/4n8g/a_long_name.log"};
  tables.add("long words", record);
  expect_golden("tables/summary.txt", tables.text());
}

TEST(Summary, OfCommunication) {
  Tables tables;
  RunRecord record = a_record();
  record.sent_bytes_per_step = 102'228'128;
  tables.add("bytes alone", record);
  record.bus_bytes_per_second = 1.424e9;
  tables.add("bandwidth", record);
  record = a_record();
  const std::vector<double> slow{0.02, 0.02}, fast{0.01, 0.01};
  record.collectives = {collective_record("bucket0.allreduce", "allreduce_sum", 50'000'000, fast),
                        collective_record("bucket1.allreduce", "allreduce_sum", 50'000'000, slow)};
  tables.add("collectives", record);
  expect_golden("tables/summary_communication.txt", tables.text());
}

TEST(Summary, OfPublishedNumbers) {
  Tables tables;
  RunRecord record = a_record();
  record.device = "cuda";
  record.device_name = "Tesla V100-SXM2-16GB (sm_70)";
  tables.add("of the nearest configurations", record);
  record.device_name = "NVIDIA H200 (sm_90)";
  record.precision = "fp16";
  record.batch_per_device = 400;
  record.world_size = record.devices_per_node = 1;
  tables.add("of the same GPU, also per device", record);
  record.model = "vgg16";
  tables.add("not of an unknown model", record);
  expect_golden("tables/summary_published.txt", tables.text());
}

// A launcher sends the other ranks SIGTERM, and not SIGINT.
TEST(Summary, OfFailedRuns) {
  Tables tables;
  RunRecord record;
  record.failure = "the disk is full";
  tables.add("without samples", record);
  record = a_record();
  record.status = "failed";
  record.iterations = 120;
  for (const auto& [signal, ranks] : {std::pair{"SIGINT", 2}, {"SIGTERM", 2}, {"SIGTERM", 1}}) {
    record.failure = std::string("interrupted by ") + signal + " after 5 of 120 iterations";
    record.world_size = ranks;
    tables.add(fmt::format("{} of {} ranks", signal, ranks), record);
  }
  expect_golden("tables/summary_failed.txt", tables.text());
}

}  // namespace
}  // namespace plumb
