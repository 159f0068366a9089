#include "results/compare/gate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "base/junit.h"
#include "base/text_table.h"
#include "base/units.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

using Outcome = GateCase::Outcome;

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
                  "the baseline's {} can be RUN's {} or its {}; pass a RUN with one of them",
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
  if (std::min(judged.baseline.size(), judged.figures.size()) < kLeastRuns) {
    judged.outcome = Outcome::too_few;
    return;
  }
  const RankTest test = mann_whitney(judged.figures, judged.baseline);
  judged.p = test.p_less;
  const double shift = smallest_shift(
      judged.baseline.size(), judged.figures.size(), pooled_log_deviation(judged.baseline, judged.figures),
      {kSignificance, -std::log1p(-criteria.max_regression), ShownWhen::Estimate::pairs});
  if (std::isfinite(shift)) judged.smallest_shown = -std::expm1(-shift);
  const bool slower = judged.p <= kSignificance && judged.slow_down > criteria.max_regression;
  const bool faster = judged.slow_down < 0 && test.p_two_sided <= 2 * kSignificance;
  judged.outcome = slower                                                           ? Outcome::regression
                   : faster || judged.smallest_shown <= 2 * criteria.max_regression ? Outcome::passed
                                                                                    : Outcome::cant_tell;
}

std::string p_text(double p) {
  return p < 0.00005 ? "< 0.0001" : fmt::format("{:.4f}", p);
}

std::string allowed(const GateCriteria& criteria) {
  return given_percent(criteria.max_regression);
}

const char* word(Outcome outcome) {
  static constexpr std::array kWords{"passed", "can't tell", "regression", "too few", "missing"};
  return kWords[static_cast<std::size_t>(outcome)];
}

std::string finding_of(const GateCase& judged, const GateCriteria& criteria) {
  const std::string change = fmt::format("{} % {} (p {}{})", percent_text(std::abs(judged.slow_down)),
                                         judged.slow_down >= 0 ? "slower" : "faster",
                                         judged.p < 0.00005 ? "" : "= ", p_text(judged.p));
  switch (judged.outcome) {
    case Outcome::regression:
      return fmt::format(
          "{}, where {} are allowed{}", change, allowed(criteria),
          judged.surroundings.empty() ? "" : "; measured with " + differences_text(judged.surroundings));
    case Outcome::passed:
      return fmt::format(
          "no regression above {} shown: {}{}", allowed(criteria), change,
          std::isfinite(judged.smallest_shown)
              ? fmt::format("; these runs would have shown {} %", percent_text(judged.smallest_shown))
              : "");
    case Outcome::cant_tell:
      return fmt::format(
          "can't tell: {}; these runs {}; measure more than {} on either side", change,
          std::isfinite(judged.smallest_shown)
              ? fmt::format("vary so much that only {} % would show", percent_text(judged.smallest_shown))
              : "can show nothing",
          std::min(judged.baseline.size(), judged.figures.size()));
    case Outcome::too_few:
      return fmt::format("{} against {} of the baseline; measure {} on either side",
                         counted(judged.figures.size(), "run"), judged.baseline.size(), kEnoughRuns);
    case Outcome::missing:
      break;
  }
  return judged.differences.empty()
             ? "not among the new runs"
             : "not among the new runs, the nearest of which differ: " + differences_text(judged.differences);
}

TextRow row_of(const GateCase& judged) {
  const bool compared = judged.is_judged();
  const auto median_text = [](const std::vector<double>& figures) {
    return figures.empty() ? "-" : fmt::format("{:.2f}", median(figures));
  };
  return {word(judged.outcome),
          fmt::format("{}, {}", judged.baseline.size(), judged.figures.size()),
          median_text(judged.baseline),
          median_text(judged.figures),
          judged.figures.empty() ? "-" : percent_text(judged.slow_down) + " %",
          judged.figures.empty() ? "-"
                                 : percent_text(1 - median(judged.figures) / median(judged.baseline)) + " %",
          compared ? p_text(judged.p) : "-",
          std::isfinite(judged.smallest_shown) && compared ? percent_text(judged.smallest_shown) + " %" : "-",
          configuration_text(judged.configuration)};
}

constexpr const char* kAlignment = "lrrrrrrrl";

std::string heading(const GateReport& report) {
  return fmt::format("images/s, medians; at most {} slower is allowed, by the median over all pairs of runs",
                     allowed(report.criteria));
}

std::vector<TextRow> table_rows(const GateReport& report) {
  std::vector<TextRow> rows{
      {"verdict", "runs", "baseline", "new", "slow-down", "of medians", "p", "would show", "case"}};
  for (const GateCase& judged : report.cases) rows.push_back(row_of(judged));
  return rows;
}

// One side of a case, as JSON has it.
struct GateSide {
  std::vector<RunFigure> runs;
  std::optional<double> median_images_per_second;
  static void fields(auto& self, auto&& each) {
    each("runs", self.runs);
    each("median_images_per_second", self.median_images_per_second, Field{.null_if_nothing = true});
  }
};

GateSide side_of(const std::vector<std::string>& runs, const std::vector<double>& figures) {
  GateSide side;
  if (!figures.empty()) side.median_images_per_second = median(figures);
  for (std::size_t i = 0; i < figures.size(); ++i) side.runs.push_back({runs[i], figures[i]});
  return side;
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
    GateCase judged{.configuration = sample.configuration,
                    .baseline_runs = sample.origins(),
                    .baseline = sample.figures()};
    if (match.sample == nullptr) {
      judged.outcome = Outcome::missing;
      judged.differences = std::move(match.differences);
    } else {
      const auto [first, is_first] = baseline_of.emplace(match.sample, &sample);
      if (!is_first)
        throw Error(ExitCode::bad_data,
                    "RUN's {} can be the baseline's {} or its {}; pass a baseline with one of them",
                    configuration_text(match.sample->configuration),
                    configuration_text(first->second->configuration),
                    configuration_text(sample.configuration));
      judged.new_runs = match.sample->origins();
      judged.figures = match.sample->figures();
      judged.surroundings = surrounding_differences(sample, *match.sample);
      judge(judged, criteria);
    }
    judged.finding = finding_of(judged, criteria);
    report.cases.push_back(std::move(judged));
  }
  for (const Sample& sample : runs)
    if (!baseline_of.contains(&sample)) report.only_new.push_back(sample.configuration);
  return report;
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
  if (report.count(Outcome::regression) > 0) return ExitCode::regression;
  const std::size_t missing = report.count(Outcome::missing);
  const bool all_missing = missing == report.cases.size();
  if (report.count(Outcome::too_few) > 0 || all_missing || (missing > 0 && !report.criteria.allow_missing))
    return ExitCode::bad_data;
  return ExitCode::ok;
}

std::string gate_summary(const GateReport& report) {
  std::string text;
  const auto append = [&](const std::string& more) { append_part(text, more, "; "); };
  for (const Outcome outcome :
       {Outcome::regression, Outcome::cant_tell, Outcome::too_few, Outcome::missing}) {
    const std::size_t cases = report.count(outcome);
    if (cases == 0) continue;
    const GateCase& example = *std::ranges::find(report.cases, outcome, &GateCase::outcome);
    append(fmt::format("{}{}: {}",
                       cases == 1 ? "" : fmt::format("{} in {} cases, first ", word(outcome), cases),
                       configuration_text(example.configuration), example.finding));
  }
  const std::size_t passed = report.count(Outcome::passed);
  if (passed > 0)
    append(
        fmt::format("{} without a regression above {}", counted(passed, "case"), allowed(report.criteria)));
  if (gate_exit_code(report) == ExitCode::bad_data)
    text += report.count(Outcome::too_few) > 0 ? ""
            : passed > 0                       ? "; measure it, or pass --allow-missing"
                                               : "; measure it in RUN";
  return text;
}

std::string gate_table(const GateReport& report) {
  return heading(report) + "\n" + padded_table(table_rows(report), kAlignment);
}

std::string gate_markdown(const GateReport& report) {
  std::vector<TextRow> rows = table_rows(report);
  for (std::size_t i = 1; i < rows.size(); ++i)
    for (std::string& cell : rows[i]) cell = markdown_literal(cell);
  std::string text = fmt::format("{}\n\n{}\n\n{}", markdown_literal(gate_summary(report)),
                                 markdown_literal(heading(report)), markdown_table(rows, kAlignment));
  for (const std::string& note : report.notes) text += fmt::format("\n{}\n", markdown_literal(note));
  return text;
}

void GateCase::fields(auto& self, auto&& each) {
  const Field null{.null_if_nothing = true};
  const auto if_known = [](bool known, double value) {
    return known && std::isfinite(value) ? std::optional(value) : std::nullopt;
  };
  each("case", self.configuration.case_name());
  each("configuration", configuration_text(self.configuration));
  each("verdict", std::string(word(self.outcome)),
       Field{"passed, can't tell, regression, too few or missing"});
  each("finding", self.finding, Field{"a sentence without the case's name"});
  each("baseline", side_of(self.baseline_runs, self.baseline));
  each("new", side_of(self.new_runs, self.figures));
  each("slow_down", if_known(!self.figures.empty(), self.slow_down), null);
  each("p", if_known(self.is_judged(), self.p), null);
  each("smallest_slow_down_shown", if_known(self.is_judged(), self.smallest_shown), null);
  each("surroundings", sides_json(self.surroundings),
       Field{.about = "where they differ: both sides by name", .written = !self.surroundings.empty()});
}

void GateReport::fields(auto& self, auto&& each) {
  const ExitCode code = gate_exit_code(self);
  each("status",
       std::string(code == ExitCode::regression         ? "regression"
                   : code != ExitCode::ok               ? "not judged"
                   : self.count(Outcome::cant_tell) > 0 ? "can't tell"
                                                        : "passed"),
       Field{"passed, can't tell, regression or not judged"});
  each("exit_code", static_cast<int>(code)), each("summary", gate_summary(self));
  each("can_tell", self.count(Outcome::cant_tell) == 0,
       Field{"whether each case would have shown twice what is allowed"});
  each("max_regression", self.criteria.max_regression), each("significance", kSignificance);
  each("cases", self.cases);
  each("only_new", mapped(self.only_new, configuration_text),
       Field{"configurations that the baseline lacks"});
  each("notes", self.notes);
}

const Document kGateDocument =
    document_of<GateReport>("plumbline.gate/1", "The verdict of plumbline gate --json.");

Json gate_json(const GateReport& report) {
  return document_json(kGateDocument.name, report);
}

std::string gate_junit(const GateReport& report) {
  std::vector<JunitCase> cases;
  for (const GateCase& judged : report.cases) {
    using enum JunitCase::Result;
    const bool is_skipped = judged.outcome == Outcome::cant_tell ||
                            (judged.outcome == Outcome::missing && report.criteria.allow_missing);
    cases.push_back({.name = configuration_text(judged.configuration),
                     .result = judged.outcome == Outcome::passed       ? passed
                               : is_skipped                            ? skipped
                               : judged.outcome == Outcome::regression ? failure
                                                                       : error,
                     .type = word(judged.outcome),
                     .message = judged.finding});
  }
  return junit_text("plumbline.gate", "plumbline gate", cases);
}

}  // namespace plumb
