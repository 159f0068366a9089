// The numbers that frameworks publish for the same workloads: results/published/published.csv (tables,
// reports and logs of DLPerf, MLPerf, NVIDIA, Paddle, Lambda, insightface and others, each row with its
// source; in our terms: GPU, classes, network, the precision that it is compared by, head; and a sentence
// where published tables contradict each other). Half precision in a column of either name is mixed, as
// Plumbline's fp16 is (fp32 masters, statistics and losses), "pure fp16" where all of the network was cast.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/analysis/configuration.h"
#include "results/record/fields.h"

namespace plumb {

// A configuration as JSON has it beside a published result.
struct ComparableAs {
  Configuration configuration;
  static void fields(auto& self, auto&& each) {
    const auto& of = self.configuration;
    each("model", of.model), each("precision", of.precision), each("device", of.device);
    each("data", of.data), each("head", of.head);
    each("classes", of.classes, Field{.null_if_nothing = true});
  }
};

struct PublishedResult {
  std::string source;                                                           // file and line, or report
  std::string framework, framework_version, model, dataset_or_mode, precision;  // as published
  std::optional<std::int64_t> batch_per_device;
  std::optional<int> nodes, devices_per_node;
  double images_per_second = 0;  // over all devices; 0: none, the row tells how many classes fit
  std::optional<double> speedup;
  std::string notes;
  Configuration configuration;   // in our terms: "resnet50", "fp16", "V100-SXM2-16GB"
  std::string inconsistency;     // a sentence, where published tables contradict each other here; else empty
  std::vector<std::string> csv;  // its fields in published.csv
  static void fields(auto& self, auto&& each) {
    const Field null{.null_if_nothing = true};
    each("source", self.source), each("framework", self.framework);
    each("framework_version", self.framework_version), each("model", self.model);
    each("dataset_or_mode", self.dataset_or_mode), each("precision", self.precision);
    each("batch_per_device", self.batch_per_device, null), each("nodes", self.nodes, null);
    each("devices_per_node", self.devices_per_node, null);
    each("images_per_second",
         self.images_per_second > 0 ? std::optional(self.images_per_second) : std::nullopt, null);
    each("speedup", self.speedup, null), each("notes", self.notes);
    each("inconsistency", self.inconsistency);
    each("comparable_as", ComparableAs{self.configuration}, Field{"in the terms of our own runs"});
  }
};

// In the order of the file; read once per call.
std::vector<PublishedResult> published_results();

// "MXNet (gluon-cv)" and "MXNet (deepinsight)" are "MXNet", "NGC PyTorch (Lambda)" is "NGC PyTorch", "NGC
// TensorFlow 1.x" is "NGC TensorFlow".
std::string framework_family(const std::string& framework);

struct PublishedFilter {
  std::string gpu;                 // names_gpu(): part of its name or generation; empty: any
  std::vector<std::string> words;  // each is part of one of a row's texts, whatever its case
};
bool matches(const PublishedResult& result, const PublishedFilter& filter);

struct NearestPublished {
  PublishedResult result;
  std::vector<Difference> differences;  // own configuration first
  static void fields(auto& self, auto&& each) {
    each("result", self.result), each("differences", self.differences);
  }
};

// Per framework family the row that differs least from `own`. The model must be equal (resnet50 counts v1.5
// and, marked, v1b), and so must the kind of device unless `of_any_kind`: no GPU's figure is near to a CPU.
// Then count GPU (gpu_distance), number of devices, precision, head, classes, batch, data, in this order; of
// equals a table's median before single runs, means and rounded figures, one without an inconsistency before
// others, then the fastest. Best first.
std::vector<NearestPublished> nearest_among(std::span<const PublishedResult> results,
                                            const Configuration& own, std::size_t most = 5,
                                            bool of_any_kind = false);

// One row each within 100 columns, under the GPU it was measured on; below them the sources that the rows'
// numbers in brackets name, with the published notes and what contradicts them.
std::string published_table(std::span<const PublishedResult> results);
// The columns of results/published/published.csv, but for the last three.
std::string published_csv(std::span<const PublishedResult> results);
Json published_json(std::vector<PublishedResult> results);
extern const Document kPublishedDocument;

// "..orch/resnet50v1.5/README.md:454", 33 columns at most.
std::string end_of_source(const std::string& source);

// "V100-SXM2-16GB, ImageNet, batch 128": what the second sides of the differences are.
std::string other_sides_text(const std::vector<Difference>& differences);

}  // namespace plumb
