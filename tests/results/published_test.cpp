#include "results/published.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "results/csv.h"
#include "tests/bench/expect_error.h"

namespace plumb {
namespace {

const std::string kHead =
    "source,framework,framework_version,model,dataset_or_mode,precision,batch_size_per_device,nodes,"
    "gpus_per_node,throughput_samples_per_s,speedup,notes\n";

Configuration own(const std::string& model, const std::string& precision, std::int64_t batch, int nodes,
                  int devices) {
  return {.framework = "Plumbline",
          .model = model,
          .precision = precision,
          .device = "NVIDIA H200",
          .data = "synthetic",
          .batch_per_device = batch,
          .nodes = nodes,
          .devices_per_node = devices};
}

std::string line_of(const NearestPublished& near) {
  return near.result.framework + " " + std::to_string(near.result.images_per_second).substr(0, 8) + ": " +
         differences_text(near.differences);
}

const NearestPublished& of_family(const std::vector<NearestPublished>& all, const std::string& family) {
  static const NearestPublished none{};
  const auto found = std::find_if(all.begin(), all.end(), [&](const NearestPublished& near) {
    return framework_family(near.result.framework) == family;
  });
  return found == all.end() ? none : *found;
}

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

TEST(Published, HasEveryRowInOurTerms) {
  const std::vector<PublishedResult> rows = published_results();
  EXPECT_EQ(rows.size(), 585u);
  const std::set<std::string> models{"resnet50", "rn50v1b", "r50", "r100", "y1"};
  const std::set<std::string> heads{"none", "dp", "mp", "pfc 0.1", "pfc 1"};
  const std::set<std::string> data{"ImageNet", "face_emore", "glint360k", "synthetic", ""};
  std::map<std::string, int> per_model;
  int without_figure = 0;
  for (const PublishedResult& row : rows) {
    const Configuration& c = row.configuration;
    SCOPED_TRACE(row.source);
    EXPECT_TRUE(models.contains(c.model)) << c.model;
    EXPECT_TRUE(heads.contains(c.head)) << c.head;
    EXPECT_TRUE(data.contains(c.data)) << c.data;
    EXPECT_TRUE((std::set<std::string>{"fp32", "fp16", "pure fp16"}).contains(c.precision)) << c.precision;
    EXPECT_GT(c.devices() * c.batch_per_device, 0);
    without_figure += row.images_per_second == 0 ? 1 : 0;
    ++per_model[c.model];
  }
  EXPECT_EQ(without_figure, 4);
  EXPECT_EQ(per_model["rn50v1b"], 40);
  EXPECT_EQ(per_model["r50"], 20);
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
  EXPECT_EQ(marked.size(), 8u);
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

TEST(Published, NearestAreOnePerFrameworkWithEveryDifferenceNamed) {
  const auto nearest = nearest_published(own("resnet50", "fp32", 128, 4, 8), 100);
  std::set<std::string> families;
  for (const NearestPublished& near : nearest)
    EXPECT_TRUE(families.insert(framework_family(near.result.framework)).second);
  EXPECT_EQ(families.size(), 9u);
  EXPECT_EQ(line_of(of_family(nearest, "OneFlow")),
            "OneFlow 12411.97: device NVIDIA H200 against V100-SXM2-16GB, data synthetic against ImageNet");
  EXPECT_EQ(line_of(of_family(nearest, "MXNet")).substr(0, 67),
            "MXNet (gluon-cv) 9579.740: model resnet50 against rn50v1b, device N");
  EXPECT_EQ(nearest_published(own("resnet50", "fp32", 128, 4, 8), 3).size(), 3u);
}

TEST(Published, NearestPrefersDevicesThenPrecisionThenBatch) {
  const auto near = of_family(nearest_published(own("resnet50", "fp16", 256, 1, 1), 100), "NGC PyTorch");
  EXPECT_EQ(near.result.configuration.case_name() + near.result.configuration.precision, "1n1gfp16");
  const auto paddle = of_family(nearest_published(own("resnet50", "fp16", 200, 4, 8), 100), "PaddlePaddle");
  EXPECT_EQ(paddle.result.configuration.batch_per_device, 196);
  const auto odd = of_family(nearest_published(own("resnet50", "fp32", 128, 1, 3), 100), "PyTorch");
  EXPECT_EQ(odd.result.configuration.devices_per_node, 4);
}

TEST(Published, NearestOfFacesHaveTheSameHead) {
  Configuration face = own("r100", "fp32", 64, 1, 8);
  face.head = "pfc 0.1";
  const auto nearest = nearest_published(face, 100);
  ASSERT_EQ(nearest.size(), 2u);
  for (const NearestPublished& near : nearest) EXPECT_EQ(near.result.configuration.head, "pfc 0.1");
}

TEST(Published, NothingIsNearAnUnknownModel) {
  EXPECT_TRUE(nearest_published(own("vgg16", "fp32", 64, 1, 1)).empty());
}

TEST(Published, FiltersByPartsOfNames) {
  const auto count = [](const PublishedFilter& filter) {
    const auto rows = published_results();
    return std::count_if(rows.begin(), rows.end(), [&](const auto& row) { return matches(row, filter); });
  };
  EXPECT_EQ(count({}), 585);
  EXPECT_EQ(count({.framework = "mindspore"}), 14);
  EXPECT_EQ(count({.model = "r50"}), 20);
  EXPECT_EQ(count({.model = "ResNet50"}), 341);
  EXPECT_EQ(count({.model = "rn50v1b", .precision = "FP16"}), 17);
  EXPECT_EQ(count({.framework = "OneFlow", .data = "glint360k", .case_name = "1n8g"}), 12);
  EXPECT_EQ(count({.words = {"oneflow", "r50", "1n8g", "data-parallel"}}), 1);
}

}  // namespace
}  // namespace plumb
