#include "results/report/report_data.h"

#include <gtest/gtest.h>

#include "tests/results/run_folder.h"
#include "tests/results/simulated_program.h"

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

TEST_F(ReportDataTest, ACurveHasOnePointPerNumberOfDevices) {
  for (const double speed : {99, 100, 102}) add_run(1, speed);
  for (const double speed : {388, 392}) add_run(4, speed);
  const ReportData data = collect();
  ASSERT_EQ(data.curves.size(), 1U);
  ASSERT_EQ(data.curves[0].points.size(), 2U);
  const ReportPoint& one = data.curves[0].points[0];
  const ReportPoint& four = data.curves[0].points[1];
  EXPECT_EQ(one.case_name, "1n1g");
  EXPECT_DOUBLE_EQ(one.median_images_per_second, 100);
  EXPECT_EQ(one.runs.size(), 3U);
  EXPECT_DOUBLE_EQ(four.median_images_per_second, 390);
  EXPECT_DOUBLE_EQ(four.speedup.value(), 3.9);
  EXPECT_DOUBLE_EQ(four.efficiency.value(), 0.975);
  EXPECT_NEAR(four.step_seconds.value(), 32 / 390.0, 1e-4);
  EXPECT_DOUBLE_EQ(four.exposed_communication_seconds.value(), 0.001);
  ASSERT_EQ(data.runs.size(), 5U);
  EXPECT_EQ(data.runs[four.runs[1]].configuration.devices(), 4);
  EXPECT_NE(data.runs[3].label, data.runs[4].label);
}

TEST_F(ReportDataTest, OneDeviceWithCollectivesIsACurveBesideTheOneWithout) {
  add_run(1, 100, "auto");
  add_run(1, 98, "nccl", 0.001);
  add_run(4, 390);
  const ReportData data = collect();
  ASSERT_EQ(data.curves.size(), 2U);
  EXPECT_EQ(data.curves[0].points.size() + data.curves[1].points.size(), 3U);
  EXPECT_NE(data.curves[0].label, data.curves[1].label);
}

TEST_F(ReportDataTest, ACurveKnowsWhatItLosesFromPointToPoint) {
  for (const double speed : {100.0, 100.2}) add_run(1, speed);
  for (const double speed : {300.0, 300.6}) add_run(4, speed);
  const ReportData data = collect();
  ASSERT_EQ(data.curves.at(0).scaling.size(), 1U);
  const auto scaling = to_json(data).at("scaling");
  ASSERT_EQ(scaling.size(), 1U);
  EXPECT_EQ(scaling[0].at("curve"), data.curves[0].label);
  EXPECT_NEAR(scaling[0].at("lost").get<double>(), 0.25, 1e-9);
  EXPECT_TRUE(scaling[0].at("text").get<std::string>().starts_with("1 to 4 devices lose 25 points"));
  EXPECT_DOUBLE_EQ(scaling[0].at("efficiency_to").get<double>(), *data.curves[0].points[1].efficiency);
}

// A profiled run on one host and one on two, 1 s and 1.25 s a step, whose links were probed before it.
class PredictedReportTest : public testing::Test {
 protected:
  PredictedReportTest() {
    RunRecord alone = example_run(8);
    alone.world_size = alone.devices_per_node = 1;
    alone.rank_window_seconds = {100};
    write_run_folder(scratch_, "runs/alone", alone);
    scratch_.write("runs/alone/program.json", two_layer_program().dump());
    scratch_.write("runs/alone/profile.json", two_layer_profile().dump());
    RunRecord two = example_run(16 / 1.25);
    two.nodes = 2;
    two.devices_per_node = 1;
    two.exposed_communication_seconds = 0.25;
    two.ranks = {{"n1", 0.25}, {"n2", 0.25}};
    two.links = links({"n1", "n2"});
    write_run_folder(scratch_, "runs/two", two);
  }
  // 20 MB/s.
  static Links links(const std::vector<std::string>& hosts) {
    Links links{.comm = "mpi", .between_hosts = Link{0, 2e7}};
    for (const std::string& host : hosts) links.hosts.push_back({host, 1});
    return links;
  }
  // The first sentence with this word; empty without one.
  static std::string left_out(const ReportData& data, const std::string& word) {
    for (const std::string& sentence : data.left_out)
      if (sentence.find(word) != std::string::npos) return sentence;
    return "";
  }
  ReportData collect(const std::string& links_file = "") const {
    return collect_report(load_samples(scratch_.path() + "/runs"), {.links = links_file});
  }

  ScratchFolder scratch_;
};

TEST_F(PredictedReportTest, ScalingIsHeldAgainstTheLinksThatTheRunsProbed) {
  const ReportData data = collect();
  ASSERT_EQ(data.curves.size(), 1U);
  const ReportCurve& curve = data.curves[0];
  ASSERT_TRUE(curve.answer.has_value());
  EXPECT_TRUE(curve.answer->sentence.starts_with("ResNet-50 v1.5 fp32 ")) << curve.answer->sentence;
  EXPECT_NE(curve.answer->sentence.find("(2n1g) reaches 80 % of a device alone"), std::string::npos)
      << curve.answer->sentence;
  ASSERT_EQ(curve.predicted.size(), 2U);
  EXPECT_EQ(curve.predicted[1].case_name, "2n1g");
  EXPECT_EQ(left_out(data, "links"), "");
  const auto json = to_json(data).at("curves").at(0);
  EXPECT_EQ(json.at("answer").at("sentence"), curve.answer->sentence);
  EXPECT_EQ(json.at("predicted").at("devices"), (std::vector{1, 2}));
  const std::string text = report_markdown(data);
  EXPECT_TRUE(text.starts_with(curve.answer->sentence.substr(0, 20))) << text;
  EXPECT_NE(text.find("| efficiency | predicted |\n"), std::string::npos) << text;
}

TEST_F(PredictedReportTest, AFileOfLinksReachesFurther) {
  scratch_.write("links.json", to_json(links({"n1", "n2", "n3", "n4"})).dump());
  EXPECT_EQ(collect(scratch_.path() + "/links.json").curves[0].predicted.back().case_name, "4n1g");
}

TEST_F(PredictedReportTest, WhatPredictsNothingIsLeftOutAndNamed) {
  scratch_.write("links.json", to_json(links({"m1", "m2"})).dump());
  ReportData data = collect(scratch_.path() + "/links.json");
  EXPECT_NE(left_out(data, "is of hosts m1, m2, the run 2n1g was on n1"), "");
  EXPECT_TRUE(data.curves[0].predicted.empty());
  scratch_.write("links.json", "[");
  data = collect(scratch_.path() + "/links.json");
  EXPECT_NE(left_out(data, "links.json"), "");
  EXPECT_EQ(data.curves[0].predicted.size(), 2U) << "by what the runs probed";
  std::string other = two_layer_profile().dump();
  other.replace(other.find("a.forward"), 1, "c");
  scratch_.write("runs/alone/profile.json", other);
  data = collect();
  EXPECT_NE(left_out(data, "another program"), "");
  EXPECT_TRUE(data.curves[0].answer.has_value()) << "by what was measured alone";
}

TEST_F(ReportDataTest, ARunShowsItsCollectives) {
  RunRecord record = example_run(100);
  const std::vector<double> seconds{0.002, 0.001};
  record.collectives = {collective_record("bucket0.allreduce", "allreduce_sum", 4'000'000, seconds)};
  write_run_folder(scratch_, "run", record);
  const auto run = to_json(collect()).at("runs").at(0);
  EXPECT_EQ(run.at("collectives").at(0).at("gigabytes_per_second").dump(), "[2.0,3.0,4.0]");
  EXPECT_EQ(run.at("collectives").at(0).at("slowest_rank"), 0);
}

TEST_F(ReportDataTest, WithoutOneDeviceThereIsNoSpeedup) {
  add_run(2, 200);
  add_run(4, 390);
  const ReportData data = collect();
  for (const ReportPoint& point : data.curves.at(0).points) {
    EXPECT_FALSE(point.speedup.has_value());
    EXPECT_FALSE(point.efficiency.has_value());
  }
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
      curve_of("OneFlow fp32, batch 128, V100-SXM2-16GB, 0.1.9, DLPerf rn50 fp32 report 0821, All Results");
  ASSERT_FALSE(runs.points.empty());
  EXPECT_EQ(runs.points[0].source, "DLPerf/OneFlow/.../reports/rn50_fp32_report_0821.md:68");
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
  write_text(scratch_ / "1nccl0" / "program.json", R"({"arena_bytes": 8, "buffers": [], "steps": []})");
  const ReportData data = collect();
  EXPECT_EQ(data.shown_run, 0U);
  EXPECT_EQ(to_json(data).at("shown_run"), 0);
}

TEST_F(ReportDataTest, LabelsAreUnique) {
  add_run(4, 390);
  const ReportData data = collect();
  std::set<std::string> labels;
  for (const ReportCurve& curve : data.published)
    EXPECT_TRUE(labels.insert(curve.label).second) << curve.label;
  for (const std::string& label : labels) EXPECT_EQ(label.find(".md"), std::string::npos) << label;
}

TEST_F(ReportDataTest, AFileThatCannotBeReadIsLeftOutAndNamed) {
  add_run(1, 100);
  write_text(last_ / "profile.json", "not json");
  write_text(last_ / "trace.json", "{\"traceEvents\": []}");
  write_text(last_ / "env.json", "{\"build\": {\"version\": \"0.1.0\"}}");
  const ReportData data = collect();
  EXPECT_EQ(data.left_out.size(), 2U);
  EXPECT_NE(data.left_out.at(0).find("profile.json"), std::string::npos);
  EXPECT_FALSE(data.runs.at(0).profile.has_value());
  const auto json = to_json(data);
  const auto& pairs = json.at("runs").at(0).at("environment");
  ASSERT_EQ(pairs.size(), 1U);
  const auto name = [&](std::size_t i) { return json.at("names").at(pairs.at(0).at(i).get<std::size_t>()); };
  EXPECT_EQ(name(0), "build.version");
  EXPECT_EQ(name(1), "0.1.0");
}

TEST_F(ReportDataTest, FilesLargerThanAnyAreLeftOutAndNamed) {
  add_run(1, 100);
  const std::vector<std::string> names{"env.json", "program.json", "profile.json", "trace.json"};
  for (const std::string& name : names) scratch_.write_sparse(last_.filename() / name);
  const ReportData data = collect();
  ASSERT_EQ(data.left_out.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i)
    EXPECT_NE(data.left_out[i].find(names[i] + "' has 1099511627776 bytes, more than the 256 MiB"),
              std::string::npos)
        << data.left_out[i];
}

TEST_F(ReportDataTest, AFileOfManyLevelsIsLeftOut) {
  add_run(1, 100);
  write_text(last_ / "env.json", "{\"a\":" + std::string(200000, '[') + std::string(200000, ']') + "}");
  const ReportData data = collect();
  EXPECT_EQ(data.left_out.size(), 1U);
  EXPECT_TRUE(data.runs.at(0).environment.empty());
}

TEST_F(ReportDataTest, JsonHasWhatThePageDraws) {
  add_run(1, 100);
  add_run(2, 190);
  const nlohmann::ordered_json json = to_json(collect());
  const nlohmann::ordered_json& point = json.at("curves").at(0).at("points").at(1);
  EXPECT_EQ(point.at("case"), "1n2g");
  EXPECT_EQ(point.at("devices"), 2);
  EXPECT_EQ(point.at("median"), 190.0);
  EXPECT_EQ(point.at("speedup"), 1.9);
  EXPECT_TRUE(point.at("joules_per_image").is_null());
  const nlohmann::ordered_json& run = json.at("runs").at(1);
  EXPECT_EQ(run.at("steps").at("median").size(), 120U);
  EXPECT_EQ(run.at("steps").at("warmup"), 20);
  EXPECT_EQ(run.at("rank_window_seconds").size(), 2U);
  EXPECT_FALSE(run.contains("profile"));
}

}  // namespace
}  // namespace plumb
