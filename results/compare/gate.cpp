#include "results/compare/gate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace plumb {
namespace {

// All that a gate must not mix: also the framework, and how the work was done.
std::vector<Difference> gate_differences(const Configuration& baseline, const Configuration& runs) {
  std::vector<Difference> found;
  if (!baseline.framework.empty() && !runs.framework.empty() && baseline.framework != runs.framework)
    found.push_back({"framework", baseline.framework, runs.framework});
  for (const auto& more : {differences(baseline, runs), setting_differences(baseline, runs)})
    found.insert(found.end(), more.begin(), more.end());
  return found;
}

// The index of the one sample that `configuration` fits, or how the nearest one differs.
struct Match {
  const Sample* sample = nullptr;
  std::vector<Difference> differences;
};

Match match_of(const Configuration& configuration, const std::vector<Sample>& runs) {
  Match match;
  for (const Sample& sample : runs) {
    auto found = gate_differences(configuration, sample.configuration);
    if (found.empty() && match.sample != nullptr)
      throw Error(ExitCode::bad_data,
                  "the baseline's {} could be the RUN's {} or its {}; give a RUN with one of them",
                  configuration_text(configuration), configuration_text(match.sample->configuration),
                  configuration_text(sample.configuration));
    if (found.empty()) {
      match = {&sample, {}};
    } else if (match.sample == nullptr &&
               (match.differences.empty() || distance(found) < distance(match.differences))) {
      match.differences = std::move(found);
    }
  }
  return match;
}

void judge(GateCase& judged, const GateCriteria& criteria) {
  judged.slow_down = 1 - shift_ratio(judged.baseline, judged.figures);
  judged.smallest_shown = std::numeric_limits<double>::infinity();
  if (std::min(judged.baseline.size(), judged.figures.size()) <
      std::max<std::size_t>(criteria.least_runs, 2)) {
    judged.outcome = GateCase::Outcome::too_few;
    return;
  }
  judged.p = mann_whitney(judged.figures, judged.baseline).p_less;
  const double shift = smallest_shift(
      judged.baseline.size(), judged.figures.size(), pooled_log_deviation(judged.baseline, judged.figures),
      {criteria.significance, -std::log1p(-criteria.max_regression), ShownWhen::Estimate::pairs});
  if (std::isfinite(shift)) judged.smallest_shown = -std::expm1(-shift);
  const bool slower = judged.p <= criteria.significance && judged.slow_down > criteria.max_regression;
  judged.outcome = slower ? GateCase::Outcome::regression : GateCase::Outcome::passed;
}

}  // namespace

GateReport gate(const std::vector<Sample>& baseline, const std::vector<Sample>& runs,
                const GateCriteria& criteria) {
  GateReport report{criteria, {}, {}, {}};
  for (const auto& [side, samples] : {std::pair("the baseline", &baseline), std::pair("RUN", &runs)})
    for (const Sample& sample : *samples)
      if (const std::string mixture = mixture_text(sample); !mixture.empty())
        report.notes.push_back(fmt::format("in {}, {}", side, mixture));
  std::map<const Sample*, const Sample*> baseline_of;
  for (const Sample& sample : baseline) {
    Match match = match_of(sample.configuration, runs);
    GateCase judged{sample.configuration, sample.origins(), {}, sample.figures()};
    if (match.sample == nullptr) {
      judged.outcome = GateCase::Outcome::missing;
      judged.differences = std::move(match.differences);
    } else {
      const auto [first, is_first] = baseline_of.emplace(match.sample, &sample);
      if (!is_first)
        throw Error(ExitCode::bad_data,
                    "the RUN's {} could be the baseline's {} or its {}; give a baseline with one of them",
                    configuration_text(match.sample->configuration),
                    configuration_text(first->second->configuration),
                    configuration_text(sample.configuration));
      judged.new_runs = match.sample->origins();
      judged.figures = match.sample->figures();
      judged.surroundings = surrounding_differences(sample, *match.sample);
      judge(judged, criteria);
    }
    report.cases.push_back(std::move(judged));
  }
  for (const Sample& sample : runs)
    if (!baseline_of.contains(&sample)) report.only_new.push_back(sample.configuration);
  return report;
}

std::size_t GateReport::count(GateCase::Outcome outcome) const {
  return static_cast<std::size_t>(std::ranges::count(cases, outcome, &GateCase::outcome));
}

std::vector<Sample> latest_before(std::vector<Sample> baseline, const std::vector<Sample>& runs,
                                  std::size_t count) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const Sample& sample : runs)
    for (const Measurement& run : sample.runs) first = std::min(first, run.started);
  for (Sample& sample : baseline) {
    std::erase_if(sample.runs, [&](const Measurement& run) { return run.started >= first; });
    std::ranges::stable_sort(sample.runs, {}, &Measurement::started);
    if (sample.runs.size() > count)
      sample.runs.erase(sample.runs.begin(), sample.runs.end() - static_cast<std::ptrdiff_t>(count));
  }
  std::erase_if(baseline, [](const Sample& sample) { return sample.runs.empty(); });
  return baseline;
}

ExitCode gate_exit_code(const GateReport& report) {
  if (report.count(GateCase::Outcome::regression) > 0) return ExitCode::regression;
  const std::size_t missing = report.count(GateCase::Outcome::missing);
  const bool all_missing = missing == report.cases.size();
  if (report.count(GateCase::Outcome::too_few) > 0 || all_missing ||
      (missing > 0 && !report.criteria.allow_missing))
    return ExitCode::bad_data;
  return ExitCode::ok;
}

}  // namespace plumb
