#include "results/report/report_data.h"

#include <gtest/gtest.h>

#include "tests/results/run_folder.h"

namespace plumb {
namespace {

class ReportDataTest : public testing::Test {
 protected:
  // A run on `devices` GPUs of one node, batch 8 on each.
  void add_run(int devices, double images_per_second, const std::string& comm = "nccl",
               double exposed_seconds_alone = 0) {
    RunRecord record = example_run(images_per_second);
    record.device = "cuda";
    record.device_name = "NVIDIA H200";
    record.world_size = record.devices_per_node = devices;
    record.rank_window_seconds.assign(static_cast<std::size_t>(devices), 1.0);
    record.step_seconds.assign(120, 8 * devices / images_per_second);
    record.exposed_communication_seconds = devices > 1 ? 0.001 : exposed_seconds_alone;
    record.config["comm"] = comm;
    last_ = write_run_folder(scratch_, std::to_string(devices) + comm + std::to_string(count_++), record);
  }
  ReportData collect() { return collect_report(load_samples({scratch_.path()})); }

  ScratchFolder scratch_;
  std::filesystem::path last_;
  int count_ = 0;
};

TEST_F(ReportDataTest, OneDeviceWithCollectivesIsACurveBesideTheOneWithout) {
  add_run(1, 100, "auto");
  add_run(1, 98, "nccl", 0.001);
  add_run(4, 390);
  const ReportData data = collect();
  ASSERT_EQ(data.curves.size(), 2U);
  EXPECT_EQ(data.curves[0].points.size() + data.curves[1].points.size(), 3U);
  EXPECT_NE(data.curves[0].label, data.curves[1].label);
}

TEST_F(ReportDataTest, HowDevicesTalkMakesCurvesThatShareTheOneDeviceRun) {
  add_run(1, 100);
  add_run(4, 390);
  add_run(4, 300, "mpi");
  const ReportData data = collect();
  ASSERT_EQ(data.curves.size(), 2U);
  EXPECT_NE(data.curves[0].label, data.curves[1].label);
  for (const ReportCurve& curve : data.curves)
    EXPECT_DOUBLE_EQ(curve.points.back().speedup.value(), curve.points.back().median_images_per_second / 100);
}

TEST_F(ReportDataTest, PublishedCurvesAreTheNearestTables) {
  add_run(1, 100);
  const ReportData data = collect();
  EXPECT_LE(data.published.size(), 3U);
  const auto h200 = std::ranges::find_if(data.published, [](const ReportCurve& curve) {
    return curve.label.starts_with("NGC PyTorch (Lambda) ");
  });
  ASSERT_NE(h200, data.published.end());
  EXPECT_FALSE(h200->differences.empty());
  ASSERT_EQ(h200->points.size(), 2U);
  EXPECT_EQ(h200->points[0].devices, 1);
  EXPECT_EQ(h200->points[1].devices, 8);
  EXPECT_TRUE(
      h200->points[0].source.starts_with("lambdal/deeplearning-benchmark@aa5addb6:pytorch/results_v2"));
}

TEST_F(ReportDataTest, PublishedCurvesNameTheirModel) {
  add_run(1, 100);
  write_run_folder(scratch_, "faces", example_face_run(1000));
  for (const ReportCurve& curve : collect().published)
    EXPECT_NE(curve.label.find(" " + curve.configuration.model + " "), std::string::npos) << curve.label;
}

TEST_F(ReportDataTest, TheRunOfWhichMostIsKnownIsShown) {
  add_run(1, 100);
  add_run(4, 390);
  EXPECT_EQ(collect().shown_run, 1U) << "of the largest case";
  write_text(scratch_ / "1nccl0" / "trace.json", "{}");
  const ReportData data = collect();
  EXPECT_EQ(data.shown_run, 0U);
}

TEST_F(ReportDataTest, ProfilesOfWhichATimeIsMissingAreLeftOut) {
  add_run(1, 100);
  const Json kind{{"name", "add"}, {"ops", 1}, {"seconds", 1.0}, {"roofline_seconds", 1.0}};
  Json json{{"device", "some GPU"}, {"kinds", {kind}}, {"ops", Json::array()}};
  for (const char* key : {"peak_flops_per_second", "peak_bytes_per_second", "iteration_seconds",
                          "busy_seconds", "gap_seconds", "roofline_seconds"})
    json[key] = 1.0;
  write_text(last_ / "profile.json", json.dump());
  EXPECT_EQ(collect().runs.at(0).kinds.size(), 1U);
  json["roofline_seconds"] = nullptr;
  write_text(last_ / "profile.json", json.dump());
  EXPECT_NE(collect().left_out.at(0).find("seconds"), std::string::npos);
}

TEST_F(ReportDataTest, LabelsAreUnique) {
  add_run(4, 390);
  const ReportData data = collect();
  std::set<std::string> labels;
  for (const ReportCurve& curve : data.published)
    EXPECT_TRUE(labels.insert(curve.label).second) << curve.label;
}

}  // namespace
}  // namespace plumb
