// The model held against the scaling that frameworks publish for V100s: 32 devices predicted from 1, 8
// and 16.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "results/published/published.h"

namespace plumb {

// One framework's table of ResNet-50 on 1n1g, 1n8g, 2n8g and 4n8g.
struct PublishedSeries {
  std::string source, framework, precision;  // as published; TensorFlow's with XLA says so
  std::int64_t batch_per_device = 0;
  std::map<int, double> images_per_second;  // by devices: 1, 8, 16, 32; the mean where a table lists runs
  double gradient_bytes = 4;                // per element, as the framework sends them
  bool is_reference = false;                // of the twelve by which the model is judged

  // Per device, over one device.
  double efficiency(int n) const { return images_per_second.at(n) / n / images_per_second.at(1); }
};

struct SeriesPrediction {
  PublishedSeries series;
  // Throughput on 32 devices: by latency and published bandwidth alone; with the jitter of 8 devices; with
  // the bandwidth, too, that explains 16; twice that of 16.
  double by_links = 0, with_jitter = 0, predicted = 0, naive = 0;
  std::string oddity;  // why the table scales in a way that no link explains; empty: it doesn't
};

// Relative errors of a prediction.
struct PredictionErrors {
  double mean = 0, worst = 0;
};

struct PublishedValidation {
  std::vector<SeriesPrediction> series;

  // `prediction`: &SeriesPrediction::predicted, …; over the twelve, or over all.
  PredictionErrors errors(double SeriesPrediction::*prediction, bool reference_only) const;
};

// Time on n devices: T(1) + exposed(n) + delta(n), delta(n) = delta(8) E(n) / E(8). Buckets of 25 MiB, NCCL's
// latencies, NVLink within a host; the bandwidth between hosts is the one with which T(16) comes out. It
// stands in for all that is slower there, so it is kept to itself. A step's ops are as long as their
// rooflines on a V100, which bench_resnet50 prints.
PublishedValidation validate_published(std::span<const PublishedResult> results);

std::string validation_text(const PublishedValidation& validation);
// {"errors": {"predicted", "naive"}, "series"}, which docs/make_pictures.py and check_figures.py read.
nlohmann::ordered_json validation_json(const PublishedValidation& validation);

}  // namespace plumb
