#include "results/anomalies/flags.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "results/anomalies/slow_links.h"
#include "results/statistics/robust.h"
#include "results/statistics/significance.h"
#include "results/statistics/stalls.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

// Smaller differences occur between any two days.
constexpr double kLeastRunDistance = 0.05;
// A run is an outlier from so many deviations (median_deviation) on: of samples of normal values that vary by
// 2 %, some run is called one in under two of a hundred.
constexpr double kOutlierRunDeviations = 6;
// Fewer runs than kEnoughRuns can't tell which one is off, only that they are this far apart: with a
// run-to-run spread of 2 %, four are once in 200 samples.
constexpr double kFarApart = 0.1;
// Share of a step; a shorter wait doesn't explain a slow run.
constexpr double kLeastDataWait = 0.02;
// Share of the window; shorter is chance: one sample of twenty.
constexpr double kLeastThrottledShare = 0.05;

std::vector<Note> failed_check_flags(const RunRecord& record) {
  std::vector<Note> flags;
  if (record.status != "ok") flags.push_back({"failed_check", failure_text(record)});
  for (const auto& [name, outcome] : record.checks.items())
    if (outcome.is_boolean() && !outcome.get<bool>())
      flags.push_back({"failed_check", fmt::format("the check {} failed", name)});
  return flags;
}

// Names the GPU that was throttled longest, and counts the others.
std::optional<Note> throttling_flag(const std::vector<GpuRecord>& gpus) {
  const auto throttled = std::ranges::count_if(
      gpus, [](const GpuRecord& gpu) { return gpu.throttled_share >= kLeastThrottledShare; });
  if (throttled == 0) return std::nullopt;
  const GpuRecord& worst = *std::ranges::max_element(gpus, {}, &GpuRecord::throttled_share);
  return Note{"throttling",
              throttling_text(worst) + (throttled > 1 ? fmt::format("; {} GPUs in all", throttled) : "")};
}

std::string figure_text(double images_per_second) {
  return fmt::format("{:.2f} images/s", images_per_second);
}

std::optional<Note> data_wait_flag(const RunRecord& record, double step_seconds) {
  if (!(record.data_wait_seconds >= kLeastDataWait * step_seconds)) return std::nullopt;
  return Note{"note", fmt::format("compute waits {} of a step for data",
                                  whole_percent(record.data_wait_seconds / step_seconds))};
}

std::optional<Note> loss_flag(const RunRecord& record) {
  if (record.loss.empty()) return std::nullopt;
  const std::string text = divergence_text(record.loss.front(), record.loss.back());
  return text.empty() ? std::nullopt : std::optional(Note{"note", text + ", lower --lr"});
}

std::vector<Note> outlier_run_flags(const Sample& sample) {
  const std::vector<double> figures = sample.figures();
  std::vector<Note> flags;
  if (figures.size() < kEnoughRuns) return flags;
  const double level = median(figures);
  const double limit =
      std::max(kLeastRunDistance * level, kOutlierRunDeviations * median_deviation(figures, level));
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const double distance = std::abs(figures[i] - level);
    if (distance < limit) continue;
    flags.push_back({"outlier_run", fmt::format("{} is {} {} than the median of the {} runs ({} against {})",
                                                sample.runs[i].origin, whole_percent(distance / level),
                                                figures[i] < level ? "slower" : "faster", figures.size(),
                                                figure_text(figures[i]), figure_text(level))});
  }
  return flags;
}

std::optional<Note> far_apart_flag(const Sample& sample) {
  const std::vector<double> figures = sample.figures();
  if (figures.size() < 2 || figures.size() >= kEnoughRuns) return std::nullopt;
  const auto [low, high] = std::minmax_element(figures.begin(), figures.end());
  if (!(*low > 0) || *high < *low * (1 + kFarApart)) return std::nullopt;
  return Note{"outlier_run",
              fmt::format("{} runs differ by {}, from {} to {}: too few to tell which is off, run {} or more",
                          figures.size(), whole_percent(*high / *low - 1), figure_text(*low),
                          figure_text(*high), kEnoughRuns)};
}

}  // namespace

std::vector<Note> run_flags(const RunRecord& record) {
  std::vector<Note> flags = failed_check_flags(record);
  const auto append = [&](std::vector<Note> more) { flags.insert(flags.end(), more.begin(), more.end()); };
  if (const std::string text = shared_gpu_text(record.ranks_per_gpu); !text.empty())
    flags.push_back({"note", text});
  if (const auto throttled = throttling_flag(record.gpus)) flags.push_back(*throttled);
  if (const auto diverged = loss_flag(record)) flags.push_back(*diverged);
  if (const std::string text = record.links ? slow_warning(*record.links) : ""; !text.empty())
    flags.push_back({"slow_link", text});
  const std::span<const double> window = record.window();
  const auto is_time = [](double step) { return step > 0 && std::isfinite(step); };
  if (window.empty() || !std::ranges::all_of(window, is_time)) return flags;
  const double mean_step_seconds = mean(window);
  append(slow_rank_flags(record.ranks, mean_step_seconds));
  // A warm-up that isn't over explains slow steps at the start, and a stall explains steps far off.
  const auto too_early = warmup_flag(window, record.warmup);
  const std::span<const double> warm = too_early ? settled(window) : window;
  const auto stall = stall_flag(window, record.warmup);
  const auto outliers = stall ? std::nullopt : outliers_flag(warm);
  for (const auto& flag :
       {stall, too_early, drift_flag(window), outliers, data_wait_flag(record, mean_step_seconds)})
    if (flag) flags.push_back(*flag);
  return flags;
}

std::string shared_gpu_text(int ranks_per_gpu) {
  if (ranks_per_gpu == 1) return "";
  return fmt::format("{} ranks share one GPU: a check, not a speed", ranks_per_gpu);
}

std::vector<Note> sample_flags(const Sample& sample) {
  std::vector<Note> flags;
  if (const auto apart = far_apart_flag(sample))
    flags.push_back(*apart);
  else
    flags = outlier_run_flags(sample);
  if (const std::string mixture = mixture_text(sample); !mixture.empty()) flags.push_back({"note", mixture});
  for (const Measurement& run : sample.runs) {
    if (!run.record) continue;
    for (Note& flag : run_flags(*run.record)) {
      flag.subject = run.origin;
      flags.push_back(std::move(flag));
    }
  }
  return flags;
}

}  // namespace plumb
