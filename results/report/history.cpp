#include "results/report/history.h"

#include <spdlog/fmt/chrono.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/text.h"
#include "results/report/report_curves.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr const char* kCommitName = "commit";

std::string local_time(std::int64_t seconds, fmt::format_string<std::tm> format) {
  return seconds == 0 ? "" : fmt::format(format, fmt::localtime(static_cast<std::time_t>(seconds)));
}

std::string commit_of(const Measurement& run) {
  if (!run.surroundings) return "";
  const auto found =
      std::ranges::find(*run.surroundings, std::string(kCommitName), &Surroundings::value_type::first);
  return found == run.surroundings->end() || found->second == "unknown" ? "" : found->second;
}

// One sentence; empty if all commits are known.
std::string unknown_commits_text(const std::vector<Sample>& samples) {
  std::size_t all = 0, unknown = 0;
  std::string first;
  for (const Sample& sample : samples)
    for (const Measurement& run : sample.runs) {
      ++all;
      if (!commit_of(run).empty()) continue;
      if (unknown++ == 0) first = run.origin;
    }
  if (unknown == 0) return "";
  return fmt::format(
      "the commit of {} of {} isn't known, first {}: logs, and runs whose env.json names none, are grouped "
      "by "
      "day",
      unknown, counted(all, "run"), first);
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

// With what the gate looks at alone: results of long histories are large.
Sample figures_alone(const Sample& sample) {
  Sample light{sample.configuration, {}};
  for (const Measurement& run : sample.runs)
    light.runs.push_back(
        {.origin = run.origin, .images_per_second = run.images_per_second, .started = run.started});
  return light;
}

HistoryPoint history_point(const Sample& group) {
  HistoryPoint point;
  point.commit = commit_of(group.runs.front());
  point.started = group.runs.front().started;
  point.runs = group.origins();
  point.images_per_second = group.figures();
  point.median = median(point.images_per_second);
  const auto [lowest, highest] = std::ranges::minmax(point.images_per_second);
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

std::vector<HistoryPoint> history_points(const Sample& sample, const HistoryOptions& options) {
  const std::vector<Sample> groups = grouped_by_commit(sample);
  const Sample all = figures_alone(sample);
  std::vector<HistoryPoint> points;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    points.push_back(history_point(groups[i]));
    const Sample group = figures_alone(groups[i]);
    judge_trend(latest_before({all}, {group}, options.baseline_last), group, options.criteria, points.back());
    if (i == 0) continue;
    std::vector<Difference>& surroundings = points.back().surroundings;
    surroundings = surrounding_differences(groups[i - 1], groups[i]);
    std::erase_if(surroundings, [](const Difference& one) { return one.what == kCommitName; });
  }
  return points;
}

}  // namespace

std::string HistoryPoint::day() const {
  return local_time(started, "{:%F}");
}

std::string HistoryPoint::began() const {
  return local_time(started, "{:%FT%T}");
}

History collect_history(const LoadedSamples& samples, const HistoryOptions& options) {
  const std::vector<CurveSamples> groups = group_by_curve(samples.samples);
  std::vector<ReportCurve> curves = own_curves(groups);
  name_curves(curves);
  History history{
      .title = options.title.empty() ? "Throughput history of " + subject_of(curves) : options.title,
      .made_by = options.made_by,
      .created = options.created,
      .criteria = options.criteria,
      .baseline_last = options.baseline_last};
  for (std::size_t c = 0; c < groups.size(); ++c)
    for (std::size_t p = 0; p < groups[c].size(); ++p) {
      const Sample& sample = *groups[c][p];
      history.lines.push_back({curves[c].label + ", " + curves[c].points[p].case_name, sample.configuration,
                               history_points(sample, options)});
    }
  if (const std::string note = unknown_commits_text(samples.samples); !note.empty())
    history.notes.push_back(note);
  for (const Note& bad : samples.bad) history.left_out.push_back(note_text(bad));
  return history;
}

}  // namespace plumb
