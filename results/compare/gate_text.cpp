#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/markup.h"
#include "base/text_table.h"
#include "results/compare/gate.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

using Outcome = GateCase::Outcome;

std::string fixed(double value, int decimals) {
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string percent(double share) {
  const double rounded = std::round(1000 * share) / 10;
  return fixed(rounded == 0 ? 0.0 : rounded, 1) + " %";
}

std::string p_text(double p) {
  return p < 0.00005 ? "< 0.0001" : fixed(p, 4);
}

std::string allowed(const GateReport& report) {
  char text[48];
  std::snprintf(text, sizeof text, "%.4g %%", 100 * report.criteria.max_regression);
  return text;
}

std::string counted(std::size_t count, const std::string& one, const std::string& many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

const char* word(Outcome outcome) {
  switch (outcome) {
    case Outcome::passed:
      return "passed";
    case Outcome::regression:
      return "regression";
    case Outcome::too_few:
      return "too few";
    case Outcome::missing:
      break;
  }
  return "missing";
}

// Before a number of cases.
std::string phrase(Outcome outcome) {
  return outcome == Outcome::regression ? "a regression in "
         : outcome == Outcome::too_few  ? "too few runs in "
                                        : "no runs of ";
}

// What was found of a case, without its name.
std::string finding(const GateCase& judged, const GateReport& report) {
  const std::string change = percent(std::abs(judged.slow_down)) +
                             (judged.slow_down >= 0 ? " slower" : " faster") + " (p " +
                             (judged.p < 0.00005 ? "" : "= ") + p_text(judged.p) + ")";
  switch (judged.outcome) {
    case Outcome::regression:
      return change + ", where " + allowed(report) + " are allowed";
    case Outcome::passed:
      return "no regression above " + allowed(report) + " shown: " + change +
             (std::isfinite(judged.smallest_shown)
                  ? "; these runs would have shown " + percent(judged.smallest_shown)
                  : "");
    case Outcome::too_few:
      return counted(judged.figures.size(), "run", "runs") + " against " +
             std::to_string(judged.baseline.size()) + " of the baseline; " +
             std::to_string(report.criteria.least_runs) + " on either side are needed";
    case Outcome::missing:
      break;
  }
  return judged.differences.empty()
             ? "not among the new runs"
             : "not among the new runs, the nearest of which differ: " + differences_text(judged.differences);
}

TextRow row_of(const GateCase& judged) {
  const bool compared = judged.outcome == Outcome::passed || judged.outcome == Outcome::regression;
  const auto median_text = [](const std::vector<double>& figures) {
    return figures.empty() ? "-" : fixed(median(figures), 2);
  };
  return {word(judged.outcome),
          std::to_string(judged.baseline.size()) + ", " + std::to_string(judged.figures.size()),
          median_text(judged.baseline),
          median_text(judged.figures),
          judged.figures.empty() ? "-" : percent(judged.slow_down),
          compared ? p_text(judged.p) : "-",
          std::isfinite(judged.smallest_shown) && compared ? percent(judged.smallest_shown) : "-",
          configuration_text(judged.configuration)};
}

nlohmann::ordered_json side_json(const std::vector<std::string>& runs, const std::vector<double>& figures) {
  nlohmann::ordered_json json{{"runs", nlohmann::ordered_json::array()},
                              {"median_images_per_second", nullptr}};
  if (!figures.empty()) json["median_images_per_second"] = median(figures);
  for (std::size_t i = 0; i < figures.size(); ++i)
    json["runs"].push_back({{"origin", runs[i]}, {"images_per_second", figures[i]}});
  return json;
}

// Valid UTF-8 without the control characters that XML has no place for.
std::string xml_text(const std::string& text) {
  using nlohmann::json;
  const std::string valid =
      json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
  std::string allowed;
  for (const char letter : valid) allowed += letter >= 0 && letter < ' ' ? '?' : letter;
  return markup_escaped(allowed);
}

std::size_t count(const GateReport& report, Outcome outcome) {
  return static_cast<std::size_t>(
      std::count_if(report.cases.begin(), report.cases.end(),
                    [outcome](const GateCase& judged) { return judged.outcome == outcome; }));
}

}  // namespace

std::string gate_summary(const GateReport& report) {
  std::string text;
  const auto append = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  const auto first = [&](Outcome outcome) -> const GateCase& {
    return *std::find_if(report.cases.begin(), report.cases.end(),
                         [outcome](const GateCase& judged) { return judged.outcome == outcome; });
  };
  for (const Outcome outcome : {Outcome::regression, Outcome::too_few, Outcome::missing}) {
    const std::size_t cases = count(report, outcome);
    if (cases == 0) continue;
    const GateCase& example = first(outcome);
    append((cases == 1 ? "" : phrase(outcome) + std::to_string(cases) + " cases, first ") +
           configuration_text(example.configuration) + ": " + finding(example, report));
  }
  const std::size_t passed = count(report, Outcome::passed);
  if (passed > 0) append(counted(passed, "case", "cases") + " without a regression above " + allowed(report));
  if (gate_exit_code(report) == ExitCode::bad_data)
    text += count(report, Outcome::too_few) > 0 ? "; measure more runs"
            : passed > 0                        ? "; measure it, or give --allow-missing"
                                                : "; measure it in RUN";
  return text;
}

std::string gate_table(const GateReport& report) {
  std::vector<TextRow> rows{{"verdict", "runs", "baseline", "new", "slow-down", "p", "would show", "case"}};
  for (const GateCase& judged : report.cases) rows.push_back(row_of(judged));
  return "images/s, medians; at most " + allowed(report) + " slower is allowed\n" +
         padded_table(rows, "lrrrrrrl");
}

nlohmann::ordered_json gate_json(const GateReport& report) {
  const ExitCode code = gate_exit_code(report);
  nlohmann::ordered_json json{{"schema", "plumbline.gate/1"},
                              {"status", code == ExitCode::ok           ? "passed"
                                         : code == ExitCode::regression ? "regression"
                                                                        : "not judged"},
                              {"exit_code", static_cast<int>(code)},
                              {"summary", gate_summary(report)},
                              {"max_regression", report.criteria.max_regression},
                              {"significance", report.criteria.significance},
                              {"cases", nlohmann::ordered_json::array()},
                              {"only_new", nlohmann::ordered_json::array()}};
  for (const GateCase& judged : report.cases) {
    const bool compared = judged.outcome == Outcome::passed || judged.outcome == Outcome::regression;
    nlohmann::ordered_json entry{{"case", judged.configuration.case_name()},
                                 {"configuration", configuration_text(judged.configuration)},
                                 {"verdict", word(judged.outcome)},
                                 {"finding", finding(judged, report)},
                                 {"baseline", side_json(judged.baseline_runs, judged.baseline)},
                                 {"new", side_json(judged.new_runs, judged.figures)},
                                 {"slow_down", nullptr},
                                 {"p", nullptr},
                                 {"smallest_slow_down_shown", nullptr}};
    if (!judged.figures.empty()) entry["slow_down"] = judged.slow_down;
    if (compared) entry["p"] = judged.p;
    if (compared && std::isfinite(judged.smallest_shown))
      entry["smallest_slow_down_shown"] = judged.smallest_shown;
    json["cases"].push_back(std::move(entry));
  }
  for (const Configuration& configuration : report.only_new)
    json["only_new"].push_back(configuration_text(configuration));
  return json;
}

std::string gate_junit(const GateReport& report) {
  const bool allow = report.criteria.allow_missing;
  const std::size_t missing = count(report, Outcome::missing);
  const auto attribute = [](const char* name, std::size_t value) {
    return std::string(" ") + name + "=\"" + std::to_string(value) + "\"";
  };
  const std::string counts = attribute("tests", report.cases.size()) +
                             attribute("failures", count(report, Outcome::regression)) +
                             attribute("errors", count(report, Outcome::too_few) + (allow ? 0 : missing)) +
                             attribute("skipped", allow ? missing : 0);
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + counts +
                     ">\n  <testsuite name=\"plumbline gate\"" + counts + ">\n";
  for (const GateCase& judged : report.cases) {
    text += "    <testcase classname=\"plumbline.gate\" name=\"" +
            xml_text(configuration_text(judged.configuration)) + "\">\n      ";
    const std::string found = xml_text(finding(judged, report));
    if (judged.outcome == Outcome::passed)
      text += "<system-out>" + found + "</system-out>";
    else if (judged.outcome == Outcome::missing && allow)
      text += "<skipped message=\"" + found + "\"/>";
    else
      text += (judged.outcome == Outcome::regression ? "<failure" : "<error") + std::string(" type=\"") +
              word(judged.outcome) + "\" message=\"" + found + "\"/>";
    text += "\n    </testcase>\n";
  }
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace plumb
