// The model's errors on published tables, as text and as JSON.
#include <cmath>

#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "results/simulation/published_scaling.h"

namespace plumb {
namespace {

using ValidationJson = nlohmann::ordered_json;

constexpr std::size_t kSourceColumns = 33;

// The end of a source: "…/resnet50v1.5/README.md:280".
std::string end_of(const std::string& source) {
  return source.size() <= kSourceColumns ? source : ".." + source.substr(source.size() - kSourceColumns + 2);
}

std::string error_cell(const SeriesPrediction& one, double SeriesPrediction::*prediction) {
  const double error = one.*prediction / one.series.images_per_second.at(32) - 1;
  return fmt::format("{:+.1f} %", 100 * error);
}

TextRow series_row(const SeriesPrediction& one) {
  const PublishedSeries& series = one.series;
  return {end_of(series.source),
          shortened(series.framework, 16),
          series.precision,
          std::to_string(series.batch_per_device),
          fmt::format("{:.0f}", series.images_per_second.at(32)),
          fmt::format("{:.0f}", one.predicted),
          error_cell(one, &SeriesPrediction::predicted),
          error_cell(one, &SeriesPrediction::naive)};
}

std::string errors_line(const PublishedValidation& validation, const char* name,
                        double SeriesPrediction::*prediction) {
  const PredictionErrors few = validation.errors(prediction, true),
                         all = validation.errors(prediction, false);
  return fmt::format("  {:<44}{:>7} %{:>7} %{:>12} %{:>7} %\n", name, percent_text(few.mean),
                     percent_text(few.worst), percent_text(all.mean), percent_text(all.worst));
}

}  // namespace

std::string validation_text(const PublishedValidation& validation) {
  std::vector<TextRow> rows{
      {"table", "framework", "precision", "batch", "measured", "predicted", "error", "naive"}};
  std::size_t reference = 0;
  for (const SeriesPrediction& one : validation.series) {
    rows.push_back(series_row(one));
    reference += one.series.is_reference;
  }
  std::string text = fmt::format(
                         "ResNet-50 on 4 x 8 V100, predicted from 1, 8 and 16; the first {} judge the "
                         "model, all are {}\n\n",
                         reference, validation.series.size()) +
                     padded_table(rows, "lllr");
  text += fmt::format("\n  {:<44}{:>9}{:>9}{:>14}{:>9}\n", "error on 32 devices",
                      fmt::format("{}: mean", reference), "worst", "all: mean", "worst");
  text += errors_line(validation, "links alone: NCCL's latencies, 12.2 GB/s", &SeriesPrediction::by_links);
  text += errors_line(validation, "and jitter by 8 devices", &SeriesPrediction::with_jitter);
  text +=
      errors_line(validation, "and bandwidth by 16 devices: the prediction", &SeriesPrediction::predicted);
  text += errors_line(validation, "naive: twice the throughput of 16", &SeriesPrediction::naive);
  text += "\nodd tables:\n";
  for (const SeriesPrediction& one : validation.series)
    if (!one.oddity.empty())
      text += hanging_lines(fmt::format("{}, {} {}: {}", end_of(one.series.source), one.series.framework,
                                        one.series.precision, one.oddity),
                            "    ", "  ");
  return text;
}

ValidationJson validation_json(const PublishedValidation& validation) {
  ValidationJson json{{"schema", "plumbline.published_scaling/1"},
                      {"errors", ValidationJson::object()},
                      {"series", ValidationJson::array()}};
  const auto add = [&](const char* name, double SeriesPrediction::*prediction) {
    for (const bool reference : {true, false}) {
      const PredictionErrors errors = validation.errors(prediction, reference);
      json["errors"][name][reference ? "reference" : "all"] = {{"mean", errors.mean},
                                                               {"worst", errors.worst}};
    }
  };
  add("links", &SeriesPrediction::by_links);
  add("jitter", &SeriesPrediction::with_jitter);
  add("predicted", &SeriesPrediction::predicted);
  add("naive", &SeriesPrediction::naive);
  for (const SeriesPrediction& one : validation.series)
    json["series"].push_back({{"source", one.series.source},
                              {"framework", one.series.framework},
                              {"precision", one.series.precision},
                              {"batch_per_device", one.series.batch_per_device},
                              {"reference", one.series.is_reference},
                              {"measured", one.series.images_per_second.at(32)},
                              {"predicted", one.predicted},
                              {"naive", one.naive},
                              {"oddity", one.oddity}});
  return json;
}

}  // namespace plumb
