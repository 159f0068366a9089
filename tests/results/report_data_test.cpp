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
  ReportData collect() { return collect_report(load_samples(scratch_.path())); }

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

TEST_F(ReportDataTest, PublishedCurvesAreOfTheModelThatWasRunAndTheNearestAreSelected) {
  add_run(4, 390);
  const ReportData data = collect();
  ASSERT_GT(data.published.size(), 10U);
  std::size_t selected = 0;
  for (const ReportCurve& curve : data.published) {
    EXPECT_TRUE(curve.published);
    EXPECT_TRUE(curve.configuration.model == "resnet50" || curve.configuration.model == "rn50v1b")
        << curve.configuration.model;
    EXPECT_FALSE(curve.points.empty());
    EXPECT_FALSE(curve.source.empty());
    selected += curve.selected;
  }
  EXPECT_GE(selected, 1U);
  EXPECT_LE(selected, 3U);
  EXPECT_TRUE(data.published.front().selected);
  EXPECT_FALSE(data.published.front().differences.empty());
}

TEST_F(ReportDataTest, PublishedCurvesJoinTheRowsOfATable) {
  add_run(1, 100);
  const ReportData data = collect();
  const auto curve_of = [&](const std::string& label) {
    for (const ReportCurve& curve : data.published)
      if (curve.label.starts_with(label)) return curve;
    ADD_FAILURE() << label << " is missing";
    return ReportCurve{};
  };
  const ReportCurve h200 = curve_of("NGC PyTorch (Lambda) fp16, batch 2560, H200");
  ASSERT_EQ(h200.points.size(), 2U);
  EXPECT_EQ(h200.points[0].devices, 1);
  EXPECT_EQ(h200.points[1].devices, 8);
  EXPECT_EQ(h200.source, "lambdal/deeplearning-benchmark@aa5addb6:pytorch/results_v2");
  const ReportCurve runs =
      curve_of("OneFlow fp32, batch 128, V100-SXM2-16GB, ..rts/rn50_fp32_report_0821.md:68");
  ASSERT_FALSE(runs.points.empty());
  EXPECT_EQ(runs.source, "DLPerf/OneFlow/.../reports/rn50_fp32_report_0821.md:68");
  EXPECT_EQ(runs.points[0].images_per_second.size(), 7U);
  EXPECT_EQ(runs.points[0].median_images_per_second, 384.85);
}

TEST_F(ReportDataTest, PublishedCurvesNameTheirModelWhereSeveralWereRun) {
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

TEST_F(ReportDataTest, LabelsAreUnique) {
  add_run(4, 390);
  const ReportData data = collect();
  std::set<std::string> labels;
  for (const ReportCurve& curve : data.published)
    EXPECT_TRUE(labels.insert(curve.label).second) << curve.label;
}

}  // namespace
}  // namespace plumb
