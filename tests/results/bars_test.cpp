#include <gtest/gtest.h>

#include "results/report/report_curves.h"

namespace plumb {
namespace {

ReportPoint report_point(int devices, double median) {
  ReportPoint point;
  point.devices = devices;
  point.images_per_second = {median - 1, median, median + 2};
  point.median_images_per_second = median;
  return point;
}

ReportCurve curve_of(const std::string& framework, double speed, const std::string& fusion = "") {
  ReportCurve curve;
  curve.configuration = {.framework = framework,
                         .model = "resnet50",
                         .precision = "fp16",
                         .device = "NVIDIA H200",
                         .data = "synthetic",
                         .batch_per_device = 256};
  if (!fusion.empty()) curve.configuration.settings["fusion"] = fusion;
  curve.points = {report_point(1, speed)};
  return curve;
}

PublishedResult published(const std::string& framework, const std::string& version, const std::string& data,
                          std::int64_t batch, int nodes, int devices, double speed, const std::string& gpu) {
  return {.framework = framework,
          .framework_version = version,
          .batch_per_device = batch,
          .images_per_second = speed,
          .configuration = {.model = "resnet50",
                            .precision = "fp16",
                            .device = gpu,
                            .data = data,
                            .batch_per_device = batch,
                            .nodes = nodes,
                            .devices_per_node = devices}};
}

const std::vector<PublishedResult> kRows{
    published("PyTorch", "2.11 eager", "synthetic", 256, 1, 1, 6000, "H200"),
    published("NGC PyTorch (Lambda)", "2.3.0a0+40ec", "synthetic", 2560, 1, 1, 3000, "H200"),
    published("MLPerf MXNet", "MLPerf v4.0 (NGC 24.04)", "ImageNet", 400, 2, 8, 128000, "H200"),
    published("MLPerf MXNet", "MLPerf v4.0 (NGC 24.04)", "ImageNet", 400, 1, 8, 96000, "H100 PCIe")};

TEST(Bars, AreTheFastestOfEachFrameworkThePublishedSameWorkAndTheBestPublished) {
  ReportData data;
  data.curves = {curve_of("Plumbline", 9000, "off"), curve_of("Plumbline", 9800), curve_of("PyTorch", 6100)};
  add_bars(kRows, data);
  EXPECT_EQ(data.bars_common, "resnet50 fp16, batch 256, NVIDIA H200, synthetic");
  ASSERT_EQ(data.bars.size(), 1U);
  const std::vector<ReportBar>& bars = data.bars[0].bars;
  ASSERT_EQ(bars.size(), 4U);
  EXPECT_EQ(bars[0].label, "Plumbline");
  EXPECT_EQ(bars[0].images_per_second, 9800);
  EXPECT_EQ(bars[0].runs, 3U);
  EXPECT_EQ(bars[1].images_per_second, 6100);
  EXPECT_EQ(bars[2].label, "PyTorch 2.11 eager");
  EXPECT_EQ(bars[2].kind, ReportBar::Kind::published);
  EXPECT_EQ(bars[3].label, "MLPerf v4.0");
  EXPECT_EQ(bars[3].kind, ReportBar::Kind::best);
  EXPECT_EQ(bars[3].images_per_second, 8000);
  EXPECT_EQ(bars[3].differences, "ImageNet, batch 400, on 2 x 8 devices");
}

TEST(Bars, NeedAPointOnOneDevice) {
  ReportData data;
  data.curves = {curve_of("Plumbline", 9000)};
  data.curves[0].points = {report_point(8, 70000)};
  add_bars(kRows, data);
  EXPECT_TRUE(data.bars.empty());
}

}  // namespace
}  // namespace plumb
