#include "results/published/published.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "base/csv.h"
#include "results/formats/log_format.h"
#include "results/published/reference.h"
#include "results/record/gpu_name.h"
#include "tests/bench/expect_error.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

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
  expect_error(ExitCode::bad_data, {"x.csv:2: expected a closing quote"},
               [] { csv_records("a\n\"b", "x.csv"); });
}

TEST(Published, HasNumbersOfEveryFrameworkWhoseLogsDlperfReads) {
  std::set<std::string, std::less<>> frameworks;
  for (const PublishedResult& row : published_results()) frameworks.insert(row.framework);
  for (const LogFormat* format : log_formats())
    if (format->has_script()) {
      EXPECT_TRUE(frameworks.contains(format->framework)) << format->name;
    }
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

TEST(NearestPublished, StatesItsBatchAndIsAMedianThatNothingContradicts) {
  const Configuration own{.model = "resnet50",
                          .precision = "fp32",
                          .batch_per_device = 96,
                          .nodes = 1,
                          .devices_per_node = 1,
                          .image_size = 224,
                          .head = "none"};
  const auto row = [&](const char* source, std::int64_t batch, double speed, const char* notes,
                       const char* device) {
    PublishedResult result{.source = source,
                           .framework = "PyTorch",
                           .images_per_second = speed,
                           .notes = notes,
                           .configuration = own};
    result.configuration.batch_per_device = batch;
    result.configuration.device = device;
    return result;
  };
  constexpr const char* kGpu = "V100-SXM2-16GB";
  const auto nearest = [&](const std::vector<PublishedResult>& rows) {
    return nearest_among(rows, own).at(0).result.source;
  };
  EXPECT_EQ(nearest({row("a", 0, 500, "", kGpu), row("b", 90, 300, "", kGpu)}), "b");
  for (const char* note : {"All Results (individual run)", "average_speed (mean of runs)",
                           "total_ips of the run, NCHW", "rounded in the source"})
    EXPECT_EQ(nearest({row("a", 96, 900, note, kGpu), row("b", 96, 300, "median", kGpu)}), "b") << note;
  EXPECT_EQ(nearest({row("a", 96, 900, "", ""), row("b", 96, 300, "median", kGpu)}), "b");
}

TEST(Reference, IsFoundForTheSameWorkOnTheSameDeviceOnly) {
  const std::vector<ReferenceSpeed> references = reference_speeds();
  ASSERT_GE(references.size(), 10u);
  Configuration own{.model = "resnet50",
                    .precision = "fp16",
                    .device = "NVIDIA H100 80GB HBM3",
                    .data = "synthetic",
                    .batch_per_device = 256,
                    .nodes = 1,
                    .devices_per_node = 1,
                    .image_size = 224,
                    .head = "none",
                    .options = {{"loss_scale", "dynamic"}, {"optimizer", "sgd"}},
                    .settings = {{"iterations", "30, 10 of them warm-up"}}};
  const ReferenceSpeed* found = find_reference(references, own);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(reference_text(*found, 0.97 * found->images_per_second),
            "97.0 % of 9502.2 images/s, which NVIDIA H100 80GB HBM3 reached (median of 5 runs)");
  for (const auto& change : {+[](Configuration& one) { one.device = "NVIDIA H100 PCIe"; },
                             +[](Configuration& one) { one.batch_per_device = 128; },
                             +[](Configuration& one) { one.precision = "tf32"; },
                             +[](Configuration& one) { one.devices_per_node = 2; },
                             +[](Configuration& one) { one.settings["deterministic"] = "true"; }}) {
    Configuration other = own;
    change(other);
    EXPECT_EQ(find_reference(references, other), nullptr);
  }
}

TEST(Reference, MayBeAFileOfOnesOwn) {
  const ScratchFolder scratch;
  const std::string file = scratch / "own.csv";
  const auto read = [&](const std::string& row) {
    std::ofstream(file) << "device,model,precision,batch_per_device,image_size,head,classes,options,images_"
                           "per_second,low,high,runs,source\n"
                        << row << "\n";
    return reference_speeds(file);
  };
  const std::vector<ReferenceSpeed> own =
      read("NVIDIA H100,resnet50,fp16,256,224,none,,optimizer=sgd,9000,8900,9100,3,us");
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(own.front().images_per_second, 9000);
  EXPECT_EQ(own.front().configuration.options.at("optimizer"), "sgd");
  for (const auto& [row, words] : {std::pair("NVIDIA H100,resnet50", "expected 13 fields, found 2"),
                                   std::pair("NVIDIA H100,resnet50,fp16,many,224,none,,,9000,8900,9100,3,us",
                                             "'many': expected a number")})
    expect_error(ExitCode::bad_data, {"--reference " + file, words, "columns of"}, [&] { read(row); });
}

}  // namespace
}  // namespace plumb
