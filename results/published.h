// The numbers that frameworks publish for the same workloads: results/published.csv (DLPerf's reports, tables
// and printed averages, each row with its source).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/configuration.h"

namespace plumb {

struct PublishedResult {
  std::string source;                                                           // file and line, or report
  std::string framework, framework_version, model, dataset_or_mode, precision;  // as published
  std::optional<std::int64_t> batch_per_device;
  std::optional<int> nodes, devices_per_node;
  double images_per_second = 0;  // over all devices
  std::optional<double> speedup;
  std::string notes;
  Configuration configuration;  // in our terms: "resnet50", "fp16", V100-SXM2-16GB
  std::string inconsistency;    // a sentence, where published tables contradict each other here; else empty
};

// In the order of the file; read once per call.
std::vector<PublishedResult> published_results();

struct NearestPublished {
  PublishedResult result;
  std::vector<Difference> differences;  // own configuration first
};

// Per framework the row that differs least from `own`: model must be equal (resnet50 counts v1.5 and, marked,
// v1b), then devices, precision, batch, data, in this order. Best first.
std::vector<NearestPublished> nearest_published(const Configuration& own, std::size_t most = 5);

}  // namespace plumb
