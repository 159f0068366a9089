// Runs as MLPerf's lines and as Prometheus' text.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "results/export/exported_runs.h"
#include "tests/bench/expect_error.h"
#include "tests/results/run_folder.h"

namespace plumb {
namespace {

RunRecord checked_run(double images_per_second) {
  RunRecord record = example_run(images_per_second);
  record.checks = {{"replicas_identical", true}, {"loss_finite", true}};
  record.config.update({{"seed", 7}, {"learning_rate", 0.1}, {"weight_decay", 0.5}});
  return record;
}

std::vector<nlohmann::json> mlperf_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    EXPECT_TRUE(line.starts_with(":::MLLOG {\"namespace\": \"\", \"time_ms\": ")) << line;
    lines.push_back(nlohmann::json::parse(line.substr(9)));
  }
  return lines;
}

// The only line of a key.
nlohmann::json line_of_key(const std::vector<nlohmann::json>& lines, const std::string& key) {
  nlohmann::json found;
  for (const nlohmann::json& line : lines)
    if (line.at("key") == key) {
      EXPECT_TRUE(found.is_null()) << key << " stands there twice";
      found = line;
    }
  return found;
}

TEST(MlperfLog, HasTheRunsFiguresAtTheirTimes) {
  const RunRecord record = checked_run(100);  // 120 steps of 0.16 s, 20 of them warm-up
  const std::vector<nlohmann::json> lines = mlperf_lines(mlperf_log(record, 1'700'000'000));
  const auto value = [&](const char* key) { return line_of_key(lines, key).at("value"); };
  EXPECT_EQ(value("submission_benchmark"), "resnet");
  EXPECT_EQ(value("submission_platform"), "2xsome CPU, 1 thread");
  EXPECT_EQ(value("global_batch_size"), 16);
  EXPECT_EQ(value("train_samples"), 1920);
  EXPECT_EQ(value("max_steps"), 120);
  EXPECT_EQ(value("seed"), 7);
  EXPECT_EQ(value("opt_name"), "sgd");
  EXPECT_EQ(value("opt_base_learning_rate"), 0.1);
  EXPECT_EQ(value("opt_weight_decay"), 0.5);
  EXPECT_EQ(value("tracked_stats"), (nlohmann::json{{"throughput", 100.0}, {"train_loss", 7.0}}));
  const auto at = [&](const char* key) {
    const nlohmann::json line = line_of_key(lines, key);
    return line.at("event_type").get<std::string>() + " " +
           std::to_string(line.at("time_ms").get<std::int64_t>() - 1'700'000'000'000);
  };
  EXPECT_EQ(at("run_start"), "INTERVAL_START 0");
  EXPECT_EQ(at("block_start"), "INTERVAL_START 3200");
  EXPECT_EQ(at("block_stop"), "INTERVAL_END 19200");
  EXPECT_EQ(at("run_stop"), "INTERVAL_END 19200");
  EXPECT_EQ(line_of_key(lines, "run_stop").at("metadata").at("status"), "success");
  EXPECT_EQ(line_of_key(lines, "block_start").at("metadata").at("samples_count"), 320);
}

TEST(MlperfLog, NamesFacesByTheirModelAndLeavesOutWhatIsNotKnown) {
  RunRecord record = example_face_run(1000);
  record.loss.back() = std::nan("");
  record.config = nlohmann::ordered_json::object();
  const std::vector<nlohmann::json> lines = mlperf_lines(mlperf_log(record, 0));
  EXPECT_EQ(line_of_key(lines, "submission_benchmark").at("value"), "r50");
  EXPECT_TRUE(line_of_key(lines, "seed").is_null());
  EXPECT_EQ(line_of_key(lines, "tracked_stats").at("value"), (nlohmann::json{{"throughput", 1000.0}}));
}

Measurement measured(const RunRecord& record, std::int64_t started = 0) {
  return {.origin = "runs/a",
          .images_per_second = record.images_per_second.mean,
          .record = record,
          .started = started};
}

TEST(PrometheusText, HasAMedianOfEachConfigurationWithItsLabels) {
  std::vector<Sample> samples(1);
  samples[0].configuration = configuration_of(checked_run(100));
  samples[0].configuration.data = "a \"b\"\\c\nd";
  samples[0].runs = {measured(checked_run(100), 5), measured(checked_run(103), 9),
                     measured(checked_run(101))};
  const std::string text = prometheus_text(samples);
  const std::string labels =
      R"({model="resnet50",precision="fp32",device="some CPU, 1 thread",data="a \"b\"\\c\nd",)"
      R"(batch_per_device="8",nodes="1",devices_per_node="2",image_size="224",optimizer="sgd"})";
  for (const std::string& wanted : std::vector<std::string>{
           "# HELP plumbline_images_per_second Images of all ranks",
           "# TYPE plumbline_images_per_second gauge\n", "\nplumbline_images_per_second" + labels + " 101\n",
           "\nplumbline_peak_memory_bytes" + labels + " 1073741824\n", "\nplumbline_runs" + labels + " 3\n",
           "\nplumbline_last_run_timestamp_seconds" + labels + " 9\n"})
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted << " is missing in\n" << text;
  EXPECT_EQ(text.find("energy"), std::string::npos) << "nothing measured it";
}

TEST(PrometheusText, TellsConfigurationsApartByTheirLabels) {
  RunRecord other = checked_run(50);
  other.config["overlap"] = false;
  std::vector<Sample> samples{{configuration_of(checked_run(100)), {measured(checked_run(100))}},
                              {configuration_of(other), {measured(other)}}};
  std::istringstream lines(prometheus_text(samples));
  std::set<std::string> series, families;
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE((line.starts_with('#') ? families : series).insert(line.substr(0, line.rfind(' '))).second)
        << line;
  EXPECT_EQ(series.size(), 2u * 6u);
}

TEST(ExportedRuns, AreFinishedAndChecked) {
  const auto why = [](const RunRecord& record) { return why_not_exported(measured(record)); };
  EXPECT_EQ(why(checked_run(100)), "");
  RunRecord record = checked_run(100);
  record.checks["replicas_identical"] = "skipped";
  EXPECT_EQ(why(record), "its check replicas_identical was skipped; run the bench again without --no-check");
  record.checks["replicas_identical"] = false;
  EXPECT_EQ(why(record), "its check replicas_identical failed; run the bench again");
  record = checked_run(100);
  record.ranks_per_gpu = 2;
  EXPECT_EQ(why(record), "2 ranks share one GPU: a check, not a speed");
  EXPECT_EQ(why(example_run(100)), "it has no checks; run the bench again");
  record.status = "failed";
  record.failure = "a rank died";
  EXPECT_EQ(why(record), "the run failed: a rank died");
  EXPECT_NE(why_not_exported({.origin = "a.log"}).find("it is a log"), std::string::npos);
}

TEST(ExportedRuns, LeaveOutTheOthersAndAreRefusedWithoutAny) {
  const ScratchFolder scratch;
  write_run_folder(scratch, "runs/a", example_run(99));
  expect_error(ExitCode::bad_data, {"no run can be exported", "runs/a", "has no checks"},
               [&] { exported_runs(load_samples(scratch / "runs")); });
  write_run_folder(scratch, "runs/b", checked_run(100));
  const LoadedSamples loaded = exported_runs(load_samples(scratch / "runs"));
  ASSERT_EQ(loaded.samples.size(), 1u);
  EXPECT_EQ(loaded.samples[0].runs.size(), 1u);
  ASSERT_EQ(loaded.bad.size(), 1u);
  EXPECT_NE(loaded.bad[0].path.find("runs/a"), std::string::npos);
}

}  // namespace
}  // namespace plumb
