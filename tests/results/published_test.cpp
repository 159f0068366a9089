#include "results/published/published.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/csv.h"
#include "results/formats/log_format.h"
#include "results/record/gpu_name.h"
#include "tests/bench/expect_error.h"

namespace plumb {
namespace {

const std::string kHead =
    "source,framework,framework_version,model,dataset_or_mode,precision,batch_size_per_device,nodes,gpus_per_"
    "node,throughput_samples_per_s,speedup,notes\n";

TEST(Csv, ReadsQuotesCommasAndLineEndsInFields) {
  const auto records = csv_records("a,\"b,\"\"c\"\"\",\r\n\n\"d\ne\",f,g", "x.csv");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0], (std::vector<std::string>{"a", "b,\"c\"", ""}));
  EXPECT_EQ(records[1], (std::vector<std::string>{"d\ne", "f", "g"}));
}

TEST(Csv, WritesWhatItReads) {
  const std::vector<std::string> fields{"plain", "a,b", "say \"x\"", "two\nlines", ""};
  EXPECT_EQ(csv_records(csv_record(fields), "x.csv").at(0), fields);
  EXPECT_EQ(csv_field("a b"), "a b");
}

TEST(Csv, RefusesAQuoteThatIsNotClosed) {
  expect_error(ExitCode::bad_data, {"x.csv", "line 2", "isn't closed"},
               [] { csv_records("a\n\"b", "x.csv"); });
  expect_error(ExitCode::bad_data, {"behind a closing quote"}, [] { csv_records("\"a\"b,c", "x.csv"); });
}

TEST(Published, HasNumbersOfEveryFrameworkWhoseLogsAreRead) {
  std::set<std::string, std::less<>> frameworks;
  for (const PublishedResult& row : published_results()) frameworks.insert(row.framework);
  for (const LogFormat* format : log_formats()) EXPECT_TRUE(frameworks.contains(format->framework));
}

TEST(Published, HasEveryRowInOurTerms) {
  const std::vector<PublishedResult> rows = published_results();
  EXPECT_EQ(rows.size(), 1128u);
  const std::set<std::string> models{"resnet50", "rn50v1b", "r50", "r100", "y1"};
  const std::set<std::string> heads{"none", "dp", "mp", "pfc 0.1", "pfc 1"};
  const std::set<std::string> data{"ImageNet",  "face_emore", "glint360k", "WebFace600K",
                                   "WebFace2M", "synthetic",  ""};
  const std::set<std::string> precisions{"fp32", "tf32", "fp16", "bf16", "pure fp16"};
  std::map<std::string, int> per_model, per_generation, per_precision;
  int without_figure = 0, without_batch = 0;
  for (const PublishedResult& row : rows) {
    const Configuration& c = row.configuration;
    SCOPED_TRACE(row.source);
    EXPECT_TRUE(models.contains(c.model)) << c.model;
    EXPECT_TRUE(heads.contains(c.head)) << c.head;
    EXPECT_TRUE(data.contains(c.data)) << c.data;
    EXPECT_TRUE(precisions.contains(c.precision)) << c.precision;
    EXPECT_GT(c.devices(), 0);
    EXPECT_EQ(c.head == "none", c.image_size == 224);
    EXPECT_EQ(c.classes > 0, c.head != "none" && !c.data.empty());
    without_figure += row.images_per_second == 0 ? 1 : 0;
    without_batch += c.batch_per_device == 0 ? 1 : 0;
    ++per_model[c.model];
    ++per_precision[c.precision];
    ++per_generation[c.device.empty() ? "not stated" : generation_name(gpu_generation(c.device))];
  }
  EXPECT_EQ(without_figure, 4);
  EXPECT_EQ(without_batch, 4);
  EXPECT_EQ(per_model, (std::map<std::string, int>{
                           {"resnet50", 757}, {"rn50v1b", 40}, {"r50", 95}, {"r100", 176}, {"y1", 60}}));
  EXPECT_EQ(per_precision["tf32"], 78);
  EXPECT_EQ(per_precision["bf16"], 16);
  // Other makers' accelerators have no generation.
  EXPECT_EQ(per_generation, (std::map<std::string, int>{{"Volta", 769},
                                                        {"Turing", 11},
                                                        {"Ampere", 224},
                                                        {"Ada", 23},
                                                        {"Hopper", 65},
                                                        {"Blackwell", 8},
                                                        {"", 17},
                                                        {"not stated", 11}}));
}

// One device's figure mistaken for a whole node's would be 8 times too low beside others.
TEST(Published, HasThroughputOfAllDevicesTogether) {
  std::map<std::pair<std::string, bool>, std::pair<double, double>> slowest_and_fastest;
  for (const PublishedResult& row : published_results()) {
    const Configuration& c = row.configuration;
    if (c.head != "none") continue;
    const double each = row.images_per_second / c.devices();
    const auto [entry, is_new] =
        slowest_and_fastest.try_emplace({c.device, c.precision.ends_with("32")}, each, each);
    entry->second.first = std::min(entry->second.first, each);
    entry->second.second = std::max(entry->second.second, each);
  }
  for (const auto& [key, range] : slowest_and_fastest)
    EXPECT_LT(range.second / range.first, 6) << key.first << (key.second ? ", 32 bits" : ", 16 bits");
}

TEST(Published, ReadsGpuAndClassesOfNotes) {
  const auto configuration = [](const std::string& model, const std::string& data, const std::string& notes) {
    return published_results_of(kHead + "s,f,1," + model + "," + data + ",AMP,128,1,8,300,,\"" + notes +
                                "\"\n")
        .at(0)
        .configuration;
  };
  EXPECT_EQ(configuration("ResNet50 v1.5", "ImageNet", "").device, "V100-SXM2-16GB");
  EXPECT_EQ(configuration("ResNet50 v1.5", "ImageNet", "GPU: H100 80GB HBM3; DALI").device, "H100 80GB HBM3");
  EXPECT_EQ(configuration("ResNet50 v1.5", "ImageNet", "GPU: T4").device, "T4");
  EXPECT_EQ(configuration("ResNet50 v1.5", "ImageNet", "usage example, hardware unspecified").device, "");
  EXPECT_EQ(configuration("InsightFace r50", "face_emore; partial-fc r=1.0", "GPU: T4").classes, 85742);
  EXPECT_EQ(configuration("InsightFace r50", "glint360k; partial-fc r=1.0", "GPU: T4").classes, 360232);
  EXPECT_EQ(configuration("InsightFace r100", "synthetic; model-parallel", "classes=80000000, total").classes,
            80'000'000);
  expect_error(ExitCode::bad_data, {"record 2", "classes in notes 'many'"},
               [&] { configuration("InsightFace r50", "synthetic; model-parallel", "classes=many"); });
}

TEST(Published, TakesHalfPrecisionForMixedUnlessTheNotesSayThatAllWasCast) {
  const auto precision = [](const std::string& published, const std::string& notes) {
    return published_results_of(kHead + "s,f,1,ResNet50 v1.5,ImageNet," + published + ",128,1,8,300,," +
                                notes + "\n")
        .at(0)
        .configuration.precision;
  };
  EXPECT_EQ(precision("AMP", ""), "fp16");
  EXPECT_EQ(precision("FP16", "GPU: A100; dtype float16 with fp32 master weights"), "fp16");
  EXPECT_EQ(precision("FP16", "GPU: A100; AMP level O2"), "pure fp16");
  EXPECT_EQ(precision("FP16", "without amp"), "pure fp16");
  EXPECT_EQ(precision("TF32", ""), "tf32");
  EXPECT_EQ(precision("BF16", ""), "bf16");
}

TEST(Published, RefusesAnotherHeaderAndBrokenRecords) {
  expect_error(ExitCode::bad_data, {"record 1", "header"},
               [] { published_results_of("source,framework\n"); });
  expect_error(ExitCode::bad_data, {"record 2", "fields"}, [] { published_results_of(kHead + "a,b\n"); });
  expect_error(ExitCode::bad_data, {"record 2", "nodes 'x'"},
               [] { published_results_of(kHead + "s,f,1,ResNet50 v1.5,ImageNet,FP32,128,x,1,300,1,\n"); });
}

TEST(Published, MarksWhatItsTablesContradictEachOtherIn) {
  std::set<std::string> marked;
  for (const PublishedResult& row : published_results())
    if (!row.inconsistency.empty()) marked.insert(row.inconsistency);
  EXPECT_EQ(marked.size(), 11u);
  for (const PublishedResult& row : published_results()) {
    const std::string shown = row.precision + " " + row.configuration.precision + " " + row.inconsistency;
    if (row.images_per_second == 30713.68) {
      EXPECT_TRUE(shown == "FP16 pure fp16 " || shown.starts_with("AMP pure fp16 pure fp16")) << shown;
    }
    if (row.images_per_second == 27558.28) {
      EXPECT_EQ(shown, "AMP fp16 ");
    }
    if (row.images_per_second == 10633.22 || row.images_per_second == 11331.93) {
      EXPECT_NE(row.inconsistency, "");
    }
  }
}

TEST(Published, FiltersByPartsOfNames) {
  const auto count = [](const PublishedFilter& filter) {
    const auto rows = published_results();
    return std::count_if(rows.begin(), rows.end(), [&](const auto& row) { return matches(row, filter); });
  };
  EXPECT_EQ(count({}), 1128);
  EXPECT_EQ(count({.framework = "mindspore"}), 14);
  EXPECT_EQ(count({.model = "r50"}), 95);
  EXPECT_EQ(count({.model = "ResNet50"}), 797);
  EXPECT_EQ(count({.model = "rn50v1b", .precision = "FP16"}), 17);
  EXPECT_EQ(count({.framework = "OneFlow", .data = "glint360k", .case_name = "1n8g"}), 12);
  EXPECT_EQ(count({.gpu = "H200"}), 7);
  EXPECT_EQ(count({.gpu = "NVIDIA A100-SXM4-80GB"}), 68);
  EXPECT_EQ(count({.precision = "tf32", .gpu = "hopper"}), 15);
  EXPECT_EQ(count({.words = {"hopper", "tf32", "1n1g", "h200"}}), 2);
  EXPECT_EQ(count({.words = {"oneflow", "r50", "1n8g", "data-parallel"}}), 1);
}

TEST(NearestPublished, StatesItsBatchAndIsAMedianThatNothingContradicts) {
  const Configuration own{.model = "resnet50",
                          .precision = "fp32",
                          .batch_per_device = 96,
                          .nodes = 1,
                          .devices_per_node = 1,
                          .image_size = 224,
                          .head = "none"};
  const std::string row = "PyTorch,1,ResNet50 v1.5,ImageNet,FP32,";
  EXPECT_EQ(
      nearest_among(published_results_of(kHead + "a," + row + ",1,1,500,,\nb," + row + "90,1,1,300,,\n"), own)
          .at(0)
          .result.source,
      "b");
  for (const char* note : {"All Results (individual run)", "average_speed (mean of runs)",
                           "GPU: V100-SXM2-16GB; total_ips of the run, NCHW",
                           "GPU: V100-SXM2-16GB; rounded in the source", "hardware unspecified"}) {
    const auto rows = published_results_of(kHead + "a," + row + "96,1,1,900,,\"" + note + "\"\nb," + row +
                                           "96,1,1,300,,median\n");
    EXPECT_EQ(nearest_among(rows, own).at(0).result.source, "b") << note;
  }
}

}  // namespace
}  // namespace plumb
