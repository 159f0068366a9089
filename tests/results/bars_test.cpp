#include <gtest/gtest.h>

#include "results/report/report_curves.h"
#include "tests/results/small_report.h"

namespace plumb {
namespace {

ReportCurve curve_of(const std::string& framework, double speed, const std::string& fusion = "") {
  ReportCurve curve;
  curve.configuration = {.framework = framework,
                         .model = "resnet50",
                         .precision = "fp16",
                         .device = "NVIDIA H200",
                         .data = "synthetic",
                         .batch_per_device = 256};
  if (!fusion.empty()) curve.configuration.settings["fusion"] = fusion;
  curve.points = {report_point(1, speed, 1)};
  return curve;
}

constexpr const char* kRows =
    "source,framework,framework_version,model,dataset_or_mode,precision,batch_size_per_device,nodes,"
    "gpus_per_node,throughput_samples_per_s,speedup,notes\n"
    "a:1,PyTorch,2.11 eager,ResNet50 v1.5,synthetic,AMP,256,1,1,6000,,GPU: H200\n"
    "a:2,NGC PyTorch (Lambda),2.3.0a0+40ec,ResNet50 v1.5,synthetic,AMP,2560,1,1,3000,,GPU: H200\n"
    "a:3,MLPerf MXNet,MLPerf v4.0 (NGC 24.04),ResNet50 v1.5,ImageNet,FP16,400,2,8,128000,,GPU: H200\n"
    "a:4,MLPerf MXNet,MLPerf v4.0 (NGC 24.04),ResNet50 v1.5,ImageNet,FP16,400,1,8,96000,,GPU: H100 PCIe\n";

TEST(Bars, AreTheFastestOfEachFrameworkThePublishedSameWorkAndTheBestPublished) {
  ReportData data;
  data.curves = {curve_of("Plumbline", 9000, "off"), curve_of("Plumbline", 9800), curve_of("PyTorch", 6100)};
  add_bars(published_results_of(kRows), data);
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
  data.curves[0].points = {report_point(8, 70000, std::nullopt)};
  add_bars(published_results_of(kRows), data);
  EXPECT_TRUE(data.bars.empty());
}

}  // namespace
}  // namespace plumb
