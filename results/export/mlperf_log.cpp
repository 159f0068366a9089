// A run as lines of MLPerf's logging library.
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "base/text.h"
#include "models/catalogue.h"
#include "results/analysis/analyze.h"
#include "results/export/exported_runs.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

// mlperf_logging.mllog.constants
constexpr const char *kPointInTime = "POINT_IN_TIME", *kIntervalStart = "INTERVAL_START",
                     *kIntervalEnd = "INTERVAL_END";

// Lines at one time after the other.
class MlperfLines {
 public:
  explicit MlperfLines(std::int64_t started) : time_ms_(1000.0 * static_cast<double>(started)) {}

  void pass(std::span<const double> seconds) {
    time_ms_ += 1000 * std::accumulate(seconds.begin(), seconds.end(), 0.0);
  }
  void add(const char* type, const char* key, const Json& value, const Json& metadata = Json::object()) {
    text_ += ":::MLLOG " +
             dictionary_text({{"namespace", ""},
                              {"time_ms", std::llround(time_ms_)},
                              {"event_type", type},
                              {"key", key},
                              {"value", value},
                              {"metadata", metadata}}) +
             "\n";
  }
  const std::string& text() const { return text_; }

 private:
  double time_ms_;
  std::string text_;
};

// Options that a result has; of older ones some are missing.
void add_options(const Json& config, MlperfLines& lines) {
  constexpr std::pair<const char*, const char*> kKeys[]{{"seed", "seed"},
                                                        {"optimizer", "opt_name"},
                                                        {"learning_rate", "opt_base_learning_rate"},
                                                        {"weight_decay", "opt_weight_decay"}};
  for (const auto& [option, key] : kKeys)
    if (const auto value = config.find(option); value != config.end() && !value->is_null())
      lines.add(kPointInTime, key, *value);
}

}  // namespace

std::string mlperf_log(const RunRecord& record, std::int64_t started) {
  const Configuration configuration = configuration_of(record);
  const std::int64_t images_per_step = record.batch_per_device * record.world_size;
  const std::span<const double> steps(record.step_seconds);
  const auto warmup = static_cast<std::size_t>(record.warmup);
  const auto at_step = [&](std::int64_t step) {
    return Json{{"step_num", step}, {"samples_count", step * images_per_step}};
  };
  MlperfLines lines(started);
  const Model* const model = find_model(configuration.model);
  lines.add(kPointInTime, "submission_benchmark",
            model == nullptr || model->mlperf_name.empty() ? configuration.model : model->mlperf_name);
  lines.add(kPointInTime, "submission_platform",
            fmt::format("{}x{}", record.world_size, configuration.device));
  lines.add(kPointInTime, "global_batch_size", images_per_step);
  lines.add(kPointInTime, "train_samples", record.iterations * images_per_step);
  lines.add(kPointInTime, "max_steps", record.iterations);
  add_options(record.config, lines);
  lines.add(kIntervalStart, "run_start", nullptr);
  lines.pass(steps.first(warmup));
  lines.add(kIntervalStart, "block_start", nullptr, at_step(record.warmup));
  lines.pass(steps.subspan(warmup));
  Json stats{{"throughput", record.images_per_second.mean}};
  if (const double loss = record.loss.back(); std::isfinite(loss)) stats["train_loss"] = loss;
  lines.add(kPointInTime, "tracked_stats", stats, at_step(record.iterations));
  lines.add(kIntervalEnd, "block_stop", nullptr, at_step(record.iterations));
  lines.add(kIntervalEnd, "run_stop", nullptr, {{"status", "success"}});
  return lines.text();
}

}  // namespace plumb
