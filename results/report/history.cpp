#include "results/report/history.h"

#include <spdlog/fmt/chrono.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "results/report/report_curves.h"
#include "results/report/report_data.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

std::string local_time(std::int64_t seconds, fmt::format_string<std::tm> format) {
  return seconds == 0 ? "" : fmt::format(format, fmt::localtime(static_cast<std::time_t>(seconds)));
}

std::string commit_of(const Measurement& run) {
  if (!run.surroundings) return "";
  const auto found =
      std::ranges::find(*run.surroundings, std::string("commit"), &Surroundings::value_type::first);
  return found == run.surroundings->end() || found->second == "unknown" ? "" : found->second;
}

// The runs of each commit, and of each day those without one; by start.
std::vector<Sample> grouped_by_commit(const Sample& sample) {
  std::map<std::pair<std::string, std::string>, Sample> groups;
  for (const Measurement& run : sample.runs) {
    const std::string commit = commit_of(run);
    groups[{commit, commit.empty() ? local_time(run.started, "{:%F}") : ""}].runs.push_back(run);
  }
  std::vector<Sample> sorted;
  for (auto& [key, group] : groups) {
    group.configuration = sample.configuration;
    std::ranges::stable_sort(group.runs, {}, &Measurement::started);
    sorted.push_back(std::move(group));
  }
  std::ranges::stable_sort(sorted, {}, [](const Sample& group) { return group.runs.front().started; });
  return sorted;
}

HistoryPoint history_point(const Sample& group) {
  HistoryPoint point;
  point.commit = commit_of(group.runs.front());
  point.started = group.runs.front().started;
  for (const Measurement& run : group.runs) point.runs.push_back({run.origin, run.images_per_second});
  const std::vector<double> figures = group.figures();
  point.median = median(figures);
  const auto [lowest, highest] = std::ranges::minmax(figures);
  point.lowest = lowest;
  point.highest = highest;
  return point;
}

// The gate looks for slow-downs; speed-ups are those of its sides exchanged.
void judge_trend(const std::vector<Sample>& before, const Sample& group, const GateCriteria& criteria,
                 HistoryPoint& point) {
  if (before.empty()) return;
  GateCase judged = gate(before, {group}, criteria).cases.front();
  point.baseline_runs = judged.baseline.size();
  point.change = -judged.slow_down;
  if (!judged.is_judged()) {
    point.verdict = TrendVerdict::too_few;
    return;
  }
  const bool faster = judged.slow_down < 0;
  if (faster) judged = gate({group}, before, criteria).cases.front();
  point.p = judged.p;
  if (std::isfinite(judged.smallest_shown)) point.smallest_shown = judged.smallest_shown;
  point.verdict = judged.outcome != GateCase::Outcome::regression ? TrendVerdict::within_noise
                  : faster                                        ? TrendVerdict::improvement
                                                                  : TrendVerdict::regression;
}

std::string trend_word(TrendVerdict verdict) {
  static constexpr std::array kWords{"first", "too few runs", "regression", "improvement", "within noise"};
  return kWords[static_cast<std::size_t>(verdict)];
}

std::string trend_text(const HistoryPoint& point, const GateCriteria& criteria) {
  if (!point.change) return "no run began before these";
  std::string text =
      fmt::format("{} % {} than the {} before", percent_text(std::abs(*point.change)),
                  *point.change > 0 ? "faster" : "slower", counted(point.baseline_runs, "run"));
  if (point.verdict == TrendVerdict::too_few)
    return fmt::format("{}; {} here, measure {} on either side", text, counted(point.runs.size(), "run"),
                       kEnoughRuns);
  text += *point.p < 0.00005 ? " (p < 0.0001)" : fmt::format(" (p = {:.4f})", *point.p);
  if (point.verdict == TrendVerdict::regression)
    text += fmt::format(", where {} are allowed", given_percent(criteria.max_regression));
  if (point.verdict == TrendVerdict::within_noise && point.smallest_shown)
    text += fmt::format("; these runs would have shown {} %", percent_text(*point.smallest_shown));
  return text;
}

std::vector<HistoryPoint> history_points(const Sample& sample, const HistoryOptions& options) {
  Sample figures = sample;  // the gate is to compare no environments
  for (Measurement& run : figures.runs) run.surroundings.reset();
  std::vector<HistoryPoint> points;
  for (const Sample& group : grouped_by_commit(sample)) {
    points.push_back(history_point(group));
    judge_trend(latest_before({figures}, {group}, options.baseline_last), group, options.criteria,
                points.back());
    points.back().finding = trend_text(points.back(), options.criteria);
  }
  return points;
}

}  // namespace

std::string HistoryPoint::began() const {
  return local_time(started, "{:%FT%T}");
}

History collect_history(LoadedSamples samples, const HistoryOptions& options) {
  for (Sample& sample : samples.samples)  // the gate looks at figures alone, and long histories are large
    for (Measurement& run : sample.runs) run.record.reset();
  const std::vector<CurveSamples> groups = group_by_curve(samples.samples);
  std::vector<ReportCurve> curves = own_curves(groups);
  name_curves(curves);
  History history{options};
  history.title = "Throughput history of " + subject_of(curves);
  for (std::size_t c = 0; c < groups.size(); ++c)
    for (std::size_t p = 0; p < groups[c].size(); ++p) {
      const Sample& sample = *groups[c][p];
      history.lines.push_back({curves[c].label + ", " + curves[c].points[p].case_name, sample.configuration,
                               history_points(sample, options)});
    }
  for (const Note& bad : samples.bad) history.left_out.push_back(note_text(bad));
  return history;
}

void HistoryPoint::fields(auto& self, auto&& each) {
  const Field null{.null_if_nothing = true};
  each("commit", self.commit, null), each("began", self.began(), null);
  each("median_images_per_second", self.median), each("lowest_images_per_second", self.lowest);
  each("highest_images_per_second", self.highest), each("verdict", trend_word(self.verdict));
  each("finding", self.finding), each("baseline_runs", self.baseline_runs);
  each("change", self.change, null), each("p", self.p, null);
  each("smallest_change_shown", self.smallest_shown, null), each("runs", self.runs);
}

void HistoryLine::fields(auto& self, auto&& each) {
  each("label", self.label), each("configuration", configuration_text(self.configuration));
  each("case", self.configuration.case_name()), each("points", self.points);
}

void History::fields(auto& self, auto&& each) {
  each("title", self.title), each("made_by", self.made_by), each("created", self.created);
  each("max_regression", self.criteria.max_regression), each("significance", kSignificance);
  each("least_runs", kLeastRuns), each("baseline_last", self.baseline_last);
  each("lines", self.lines), each("left_out", self.left_out);
}

const Document kHistoryDocument = document_of<History>(
    "plumbline.history/1", "Throughput over commits and dates: plumbline report --history --format json.");

Json history_json(const History& history) {
  return document_json(kHistoryDocument.name, history);
}

}  // namespace plumb
