// The numbers that frameworks publish for the same workloads: results/published/published.csv (tables,
// reports and logs of DLPerf, MLPerf, NVIDIA, Paddle, Lambda, insightface and others, each row with its
// source; in our terms: GPU, classes, network, the precision that it is compared by, head; and a sentence
// where published tables contradict each other). Half precision in a column of either name is mixed, as
// Plumbline's fp16 is (fp32 masters, statistics and losses), "pure fp16" where all of the network was cast.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/analysis/configuration.h"

namespace plumb {

struct PublishedResult {
  std::string source;                                                           // file and line, or report
  std::string framework, framework_version, model, dataset_or_mode, precision;  // as published
  std::optional<std::int64_t> batch_per_device;
  std::optional<int> nodes, devices_per_node;
  double images_per_second = 0;  // over all devices; 0: none, the row tells how many classes fit
  std::optional<double> speedup;
  std::string notes;
  Configuration configuration;  // in our terms: "resnet50", "fp16", "V100-SXM2-16GB"
  std::string inconsistency;    // a sentence, where published tables contradict each other here; else empty
};

// In the order of the file; read once per call.
std::vector<PublishedResult> published_results();
// Results from a text like results/published/published.csv. Throws Error(bad_data) that names the line.
std::vector<PublishedResult> published_results_of(std::string_view csv);

// "MXNet (gluon-cv)" and "MXNet (deepinsight)" are "MXNet", "NGC PyTorch (Lambda)" is "NGC PyTorch", "NGC
// TensorFlow 1.x" is "NGC TensorFlow".
std::string framework_family(const std::string& framework);

// What is empty or 0 matches everything; texts match where they are a part, whatever their case.
struct PublishedFilter {
  std::string framework;
  std::string model;      // as published or in our terms
  std::string precision;  // likewise, as a whole
  std::string data;       // part of dataset_or_mode
  std::string case_name;  // "4n8g", as a whole
  std::string gpu;        // names_gpu(): part of its name or generation
  std::int64_t batch_per_device = 0;
  std::vector<std::string> words;  // each in any of a row's texts
};
bool matches(const PublishedResult& result, const PublishedFilter& filter);

struct NearestPublished {
  PublishedResult result;
  std::vector<Difference> differences;  // own configuration first
};

// Per framework family the row that differs least from `own`. The model must be equal (resnet50 counts v1.5
// and, marked, v1b), and so must the kind of device unless `of_any_kind`: no GPU's figure is near to a CPU.
// Then count GPU (gpu_distance), number of devices, precision, head, classes, batch, data, in this order; of
// equals a table's median before single runs, means and rounded figures, one without an inconsistency before
// others, then the fastest. Best first.
std::vector<NearestPublished> nearest_published(const Configuration& own, std::size_t most = 5);
std::vector<NearestPublished> nearest_among(std::span<const PublishedResult> results,
                                            const Configuration& own, std::size_t most = 5,
                                            bool of_any_kind = false);

// One row each within 100 columns, under the GPU it was measured on; below them the sources that the rows'
// numbers in brackets name, with the published notes and what contradicts them.
std::string published_table(std::span<const PublishedResult> results);
// The columns of results/published/published.csv, but for the last three.
std::string published_csv(std::span<const PublishedResult> results);
// {"schema": "plumbline.published/1", "results": [...]}
nlohmann::ordered_json published_json(std::span<const PublishedResult> results);
nlohmann::ordered_json published_result_json(const PublishedResult& result);

// "..orch/resnet50v1.5/README.md:454", 33 columns at most.
std::string end_of_source(const std::string& source);

// "V100-SXM2-16GB, ImageNet, batch 128": what the second sides of the differences are.
std::string other_sides_text(const std::vector<Difference>& differences);

}  // namespace plumb
