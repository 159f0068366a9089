#include "tests/bench/plan/published_scaling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "launch/programs.h"
#include "models/catalogue.h"
#include "results/simulation/collective_cost.h"
#include "results/simulation/simulator.h"
#include "results/simulation/step_model.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr std::array kSizes{1, 8, 16, 32};
constexpr int kDevicesPerHost = 8;

// Bytes per second: allreduces within a host of 8 V100s (130 GB/s of six NVLinks, NVIDIA's nccl-tests), and
// of one InfiniBand port of 100 Gbit/s, the most that 4 x 8 V100s are published with and what can be meant at
// least.
constexpr double kNvlink = 130e9, kInfiniband = 12.2e9, kSlowestFit = 1e7;
// Efficiencies of tables that are odd: of 8 devices below; of 32 above that of 16 by; lost from 16 to 32
// beyond what is lost from 8 to 16.
constexpr double kHeldBack = 0.7, kMoreAlike = 0.005, kLossAhead = 0.02;
constexpr std::size_t kFrameworkBucket = std::size_t{25} << 20;

bool ends_in(const PublishedResult& row, std::string_view place) {
  return row.source.ends_with(place);
}

bool has_xla(const PublishedResult& row) {
  return row.notes.find("XLA") != std::string::npos;
}

// The twelve rows: DLPerf's report of FP32 without TensorFlow 2.x, four of its rows of mixed precision, and
// NGC MXNet's own table of mixed precision.
bool is_reference(const PublishedResult& row) {
  if (ends_in(row, "dlperf_benchmark_test_report_v1.md:87")) return row.framework != "TensorFlow 2.x";
  if (ends_in(row, "dlperf_benchmark_test_report_v1.md:102"))
    return row.framework == "OneFlow" || row.framework == "NGC MXNet" || row.framework == "NGC PyTorch" ||
           (row.framework.starts_with("NGC TensorFlow") && has_xla(row));
  return row.framework == "NGC MXNet" && ends_in(row, "README.md:307");
}

// Pure half precision sends half; so does NGC MXNet in the report's row, whose numbers are those of its table
// without AMP.
double gradient_bytes_of(const PublishedResult& row) {
  const bool report_of_mxnet =
      row.framework == "NGC MXNet" && ends_in(row, "dlperf_benchmark_test_report_v1.md:102");
  return row.precision == "FP16" || report_of_mxnet ? 2 : 4;
}

int size_of(const PublishedResult& row) {
  const int nodes = row.nodes.value_or(0), devices = row.devices_per_node.value_or(0);
  const bool is_known = (nodes == 1 && devices == 1) || (devices == kDevicesPerHost && nodes > 0);
  const int size = is_known ? nodes * devices : 0;
  return std::ranges::find(kSizes, size) == kSizes.end() ? 0 : size;
}

// Latencies of NCCL 2.7.3 (src/graph/tuning.cc) for NVLink and InfiniBand.
Links nccl_links(double within_bytes_per_second, double between_bytes_per_second) {
  return {.comm = "nccl",
          .start_seconds = 8.4e-6,
          .within_host = Link{3.4e-6, within_bytes_per_second},
          .between_hosts = Link{9.6e-6, between_bytes_per_second}};
}

// ResNet-50 on a V100 as a dry run describes it, with every op in its roofline time.
StepModel published_step(const std::string& precision, std::int64_t batch_per_device) {
  const nlohmann::ordered_json plan = ask_engine(
      engine_program("bench_resnet50"), {"--dry-run", "--json", "--verbose", "--target=v100-32gb",
                                         "--" + precision, fmt::format("--bs={}", batch_per_device)});
  std::vector<double> seconds;
  for (const auto& op : plan.at("ops")) seconds.push_back(op.at("roofline_seconds"));
  return step_model(plan.at("program"), seconds, "the program of a V100");
}

// The time of a step over NCCL's rings and trees.
class SeriesModel {
 public:
  explicit SeriesModel(const PublishedSeries& series)
      : series_(series), step_(stretched_to(exchanged(series), seconds(1))) {}

  double seconds(int devices) const {
    return devices * static_cast<double>(series_.batch_per_device) / series_.images_per_second.at(devices);
  }

  // T(1) + exposed(n).
  double by_links(int devices, double between) const {
    const Layout layout{devices / kDevicesPerHost, kDevicesPerHost};
    const CollectiveCost cost(nccl_links(kNvlink, between), layout);
    return simulate(step_, [&](const StepCollective& one) { return cost.seconds(one.kind, one.bytes); })
        .seconds;
  }

  double jitter(int devices) const {
    const double of_host = seconds(kDevicesPerHost) - by_links(kDevicesPerHost, kInfiniband);
    return std::max(0.0, of_host) * expected_maximum(devices) / expected_maximum(kDevicesPerHost);
  }

  // With which T(16) comes out, at most that of the port.
  double fitted_bandwidth() const {
    const double wanted = seconds(16) - jitter(16);
    double slow = kSlowestFit, fast = kInfiniband;
    if (by_links(16, fast) >= wanted) return fast;
    for (int i = 0; i < 60; ++i) {
      const double middle = std::sqrt(slow * fast);
      (by_links(16, middle) > wanted ? slow : fast) = middle;
    }
    return fast;
  }

  double throughput(double step_seconds) const {
    return 32 * static_cast<double>(series_.batch_per_device) / step_seconds;
  }

 private:
  static StepModel exchanged(const PublishedSeries& series) {
    StepModel step =
        published_step(series.precision.starts_with("FP32") ? "fp32" : "fp16", series.batch_per_device);
    for (StepGradient& gradient : step.gradients) {
      const double elements = static_cast<double>(gradient.bytes / gradient.element_bytes);
      gradient.element_bytes = static_cast<std::size_t>(series.gradient_bytes);
      gradient.bytes = static_cast<std::size_t>(elements * series.gradient_bytes);
    }
    return with_buckets(std::move(step), {.bucket_bytes = kFrameworkBucket});
  }

  const PublishedSeries& series_;
  StepModel step_;
};

// Names scaling that no link explains.
std::string oddity_of(const PublishedSeries& series) {
  const double of_8 = series.efficiency(8), of_16 = series.efficiency(16), of_32 = series.efficiency(32);
  if (series.images_per_second.at(16) < series.images_per_second.at(8))
    return "16 devices are slower than 8: another bottleneck than links begins with the second host";
  if (of_8 < kHeldBack)
    return fmt::format(
        "8 devices of one host reach {:.0f} % each: data or launches hold them back, which stays and doesn't "
        "grow as jitter would",
        100 * of_8);
  if (of_32 > of_16 + kMoreAlike)
    return fmt::format("each device does more on 32 than on 16 ({:.0f} % after {:.0f} %)", 100 * of_32,
                       100 * of_16);
  if (of_16 - of_32 > of_8 - of_16 + kLossAhead)
    return fmt::format("from 16 to 32 more is lost than from 8 to 16 ({:.0f} %, {:.0f} %, {:.0f} %)",
                       100 * of_8, 100 * of_16, 100 * of_32);
  return "";
}

SeriesPrediction predict_series(const PublishedSeries& series) {
  const SeriesModel model(series);
  const double by_links = model.by_links(32, kInfiniband), jitter = model.jitter(32);
  const double fitted = model.by_links(32, model.fitted_bandwidth());
  return {.series = series,
          .by_links = model.throughput(by_links),
          .with_jitter = model.throughput(by_links + jitter),
          .predicted = model.throughput(fitted + jitter),
          .naive = 2 * series.images_per_second.at(16),
          .oddity = oddity_of(series)};
}

double error_of(const SeriesPrediction& one, double SeriesPrediction::*prediction) {
  return one.*prediction / one.series.images_per_second.at(32) - 1;
}

bool judges_the_model(const SeriesPrediction& one) {
  return one.series.is_reference;
}

struct NamedModel {
  const char* title;
  double SeriesPrediction::*prediction;
};
constexpr NamedModel kModels[]{{"links alone: NCCL's latencies, 12.2 GB/s", &SeriesPrediction::by_links},
                               {"and jitter by 8 devices", &SeriesPrediction::with_jitter},
                               {"and bandwidth by 16 devices: the prediction", &SeriesPrediction::predicted},
                               {"naive: twice the throughput of 16", &SeriesPrediction::naive}};

// Tables that give the same four numbers are one series, that of the twelve if one is.
std::vector<PublishedSeries> published_series(std::span<const PublishedResult> results) {
  using Key = std::tuple<std::string, std::string, std::string, std::int64_t, bool>;
  std::vector<std::pair<Key, PublishedSeries>> tables;
  std::map<Key, std::map<int, std::vector<double>>> figures;
  for (const PublishedResult& row : results) {
    const int size = size_of(row);
    if (size == 0 || row.images_per_second <= 0 || row.batch_per_device.value_or(0) <= 0) continue;
    if (comparable_model(row.configuration.model) != "resnet50") continue;
    const Key key{row.source, row.framework, row.precision, *row.batch_per_device, has_xla(row)};
    if (!figures.contains(key))
      tables.emplace_back(key, PublishedSeries{.source = row.source,
                                               .framework = row.framework,
                                               .precision = row.precision + (has_xla(row) ? " XLA" : ""),
                                               .batch_per_device = *row.batch_per_device,
                                               .gradient_bytes = gradient_bytes_of(row),
                                               .is_reference = is_reference(row)});
    figures[key][size].push_back(row.images_per_second);
  }
  std::vector<PublishedSeries> series;
  for (auto& [key, table] : tables) {
    if (figures[key].size() < kSizes.size()) continue;
    for (const auto& [size, values] : figures[key]) table.images_per_second[size] = mean(values);
    const auto same = std::ranges::find(series, table.images_per_second, &PublishedSeries::images_per_second);
    if (same == series.end())
      series.push_back(table);
    else if (table.is_reference)
      *same = table;
  }
  return series;
}

}  // namespace

PredictionErrors PublishedValidation::errors(double SeriesPrediction::*prediction,
                                             bool reference_only) const {
  PredictionErrors errors;
  std::vector<double> all;
  for (const SeriesPrediction& one : series)
    if (one.series.is_reference || !reference_only) all.push_back(std::abs(error_of(one, prediction)));
  if (all.empty()) return errors;
  return {mean(all), *std::ranges::max_element(all)};
}

PublishedValidation validate_published(std::span<const PublishedResult> results) {
  PublishedValidation validation;
  for (const PublishedSeries& series : published_series(results))
    validation.series.push_back(predict_series(series));
  std::ranges::stable_partition(validation.series, judges_the_model);
  return validation;
}

std::string validation_text(const PublishedValidation& validation) {
  std::vector<TextRow> rows{
      {"table", "framework", "precision", "batch", "measured", "predicted", "error", "naive"}};
  std::string odd;
  for (const SeriesPrediction& one : validation.series) {
    const PublishedSeries& series = one.series;
    const std::string table = end_of_source(series.source);
    const auto error_cell = [&](double SeriesPrediction::*prediction) {
      return fmt::format("{:+.1f} %", 100 * error_of(one, prediction));
    };
    rows.push_back(
        {table, shortened(series.framework, 16), series.precision, std::to_string(series.batch_per_device),
         fmt::format("{:.0f}", series.images_per_second.at(32)), fmt::format("{:.0f}", one.predicted),
         error_cell(&SeriesPrediction::predicted), error_cell(&SeriesPrediction::naive)});
    if (!one.oddity.empty())
      odd += hanging_lines(
          fmt::format("{}, {} {}: {}", table, series.framework, series.precision, one.oddity), "    ", "  ");
  }
  std::vector<TextRow> errors{{"error on 32 devices", "reference: mean", "worst", "all: mean", "worst"}};
  for (const NamedModel& model : kModels) {
    const PredictionErrors few = validation.errors(model.prediction, true);
    const PredictionErrors all = validation.errors(model.prediction, false);
    errors.push_back({model.title});
    for (const double error : {few.mean, few.worst, all.mean, all.worst})
      errors.back().push_back(percent_text(error) + " %");
  }
  return fmt::format(
      "ResNet-50 on 4 x 8 V100, predicted from 1, 8 and 16; the first {} judge the model, all are {}\n\n{}\n"
      "{}\nodd tables:\n{}",
      std::ranges::count_if(validation.series, judges_the_model), validation.series.size(),
      padded_table(rows, "lllr"), padded_table(errors, "lr"), odd);
}

nlohmann::ordered_json validation_json(const PublishedValidation& validation) {
  const auto errors = [&](double SeriesPrediction::*prediction) {
    return nlohmann::ordered_json{{"reference", {{"mean", validation.errors(prediction, true).mean}}},
                                  {"all", {{"mean", validation.errors(prediction, false).mean}}}};
  };
  nlohmann::ordered_json json{
      {"errors",
       {{"predicted", errors(&SeriesPrediction::predicted)}, {"naive", errors(&SeriesPrediction::naive)}}}};
  for (const SeriesPrediction& one : validation.series)
    json["series"].push_back({{"measured", one.series.images_per_second.at(32)},
                              {"predicted", one.predicted},
                              {"reference", one.series.is_reference}});
  return json;
}

}  // namespace plumb
