#include "results/anomalies/flags.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "base/text.h"
#include "results/anomalies/slow_links.h"
#include "results/statistics/significance.h"
#include "results/statistics/stalls.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

// Smaller differences occur between any two days.
constexpr double kLeastRunDistance = 0.03;
// In one of a hundred samples of normal values some run is called an outlier for nothing.
constexpr double kOutlierRunLevel = 0.01;
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

// At most three GPUs are named, those throttled longest; one more flag counts the others.
std::vector<Note> throttling_flags(const std::vector<GpuRecord>& gpus) {
  constexpr std::size_t kMostGpusNamed = 3;
  std::vector<const GpuRecord*> throttled;
  for (const GpuRecord& gpu : gpus)
    if (gpu.throttled_share >= kLeastThrottledShare) throttled.push_back(&gpu);
  std::ranges::stable_sort(throttled, std::ranges::greater{}, &GpuRecord::throttled_share);
  std::vector<Note> flags;
  for (const GpuRecord* gpu : throttled) {
    if (flags.size() == kMostGpusNamed) {
      const std::size_t more = throttled.size() - kMostGpusNamed;
      flags.push_back({"throttling", fmt::format("{} {} throttled, too", counted(more, "more GPU"),
                                                 more == 1 ? "was" : "were")});
      break;
    }
    flags.push_back({"throttling", throttling_text(*gpu)});
  }
  return flags;
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

// By how many of the others' standard deviations one of `runs` normal values is beside the mean of the others
// at least, for kOutlierRunLevel (the deleted residual, with Bonferroni's bound: Grubbs 1950).
double outlier_limit(std::size_t runs) {
  const auto count = static_cast<double>(runs);
  const boost::math::students_t student(count - 2);
  return quantile(complement(student, kOutlierRunLevel / (2 * count))) * std::sqrt(count / (count - 1));
}

std::vector<Note> outlier_run_flags(const Sample& sample) {
  const std::vector<double> figures = sample.figures();
  std::vector<Note> flags;
  if (figures.size() < kEnoughRuns) return flags;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    std::vector<double> others = figures;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const double level = mean(others), distance = std::abs(figures[i] - level);
    double squares = 0;
    for (const double other : others) squares += (other - level) * (other - level);
    const double deviation = std::sqrt(squares / static_cast<double>(others.size() - 1));
    if (distance < kLeastRunDistance * level || distance < outlier_limit(figures.size()) * deviation)
      continue;
    flags.push_back(
        {"outlier_run",
         fmt::format("{} is {} {} than the mean of the other {} runs ({} against {})", sample.runs[i].origin,
                     whole_percent(distance / level), figures[i] < level ? "slower" : "faster", others.size(),
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
  append(throttling_flags(record.gpus));
  if (const auto diverged = loss_flag(record)) flags.push_back(*diverged);
  if (const std::string text = record.links ? slow_warning(*record.links) : ""; !text.empty())
    flags.push_back({"slow_link", text});
  const std::span<const double> window = record.window();
  const auto is_time = [](double step) { return step > 0 && std::isfinite(step); };
  if (window.empty() || !std::ranges::all_of(window, is_time)) return flags;
  const double mean_step_seconds = mean(window);
  append(slow_rank_flags(record.ranks, mean_step_seconds));
  for (const std::string& host : record.odd_hosts) flags.push_back({"note", host});
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
