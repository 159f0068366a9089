#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "results/explain/explain.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMicrosecondsPerSecond = 1e6;
constexpr std::size_t kNameColumns = 32, kColumns = 16, kFrameworkColumns = 28;

// 1234567 -> "1234.567", in milliseconds; with a sign if wanted.
std::string milliseconds(std::int64_t microseconds, bool sign = false) {
  char text[48];
  std::snprintf(text, sizeof text, "%s%lld.%03lld",
                microseconds < 0 ? "-"
                : sign           ? "+"
                                 : "",
                static_cast<long long>(std::abs(microseconds) / 1000),
                static_cast<long long>(std::abs(microseconds) % 1000));
  return text;
}

std::string right(std::string text, std::size_t columns) {
  return text.size() < columns ? std::string(columns - text.size(), ' ') + text : text;
}

std::string row(std::string name, const std::string& ours, const std::string& theirs,
                const std::string& difference) {
  name.resize(kNameColumns, ' ');
  return name + right(ours, kColumns) + right(theirs, kFrameworkColumns) + right(difference, kColumns) + "\n";
}

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::int64_t unassigned_of(const Explanation& explanation) {
  for (const ExplainedRow& row : explanation.rows)
    if (row.category == StepCategory::unassigned) return row.theirs;
  return 0;
}

// "PyTorch's step takes 12.3 ms more (41 %), the largest part in norm (+6.1 ms)."
std::string verdict(const Explanation& explanation) {
  const std::int64_t difference = explanation.theirs - explanation.ours;
  const auto size = [&](const ExplainedRow& row) {
    return difference < 0 ? -row.difference() : row.difference();
  };
  const auto largest = std::ranges::max_element(explanation.rows, {}, size);
  if (difference == 0 || largest == explanation.rows.end()) return "Both steps take the same time.\n";
  char percent[32];
  std::snprintf(percent, sizeof percent, "%.0f %%", 100 * share(std::abs(difference), explanation.ours));
  return explanation.framework + ": a step takes " + milliseconds(std::abs(difference)) + " ms " +
         (difference > 0 ? "more" : "less") + " (" + percent + "), the largest part in " +
         std::string(name_of(largest->category)) + " (" + milliseconds(largest->difference(), true) +
         " ms).\n";
}

std::string notes(const Explanation& explanation) {
  std::string text;
  if (explanation.merged_backward)
    text += "Convolutions: the trace doesn't tell the gradients of data from those of weights.\n";
  text +=
      "Norm: Plumbline's hold the activation and the addition behind them, so see norm and elementwise as "
      "one.\n";
  if (explanation.hidden_communication > 0)
    text += "Communication beside other work, not in the table: " +
            milliseconds(explanation.hidden_communication) + " ms of the framework's.\n";
  for (const auto& [name, time] : explanation.unassigned)
    text += "Unassigned: " + milliseconds(time) + " ms in " + name.substr(0, 60) + "\n";
  if (explanation.run_step_seconds)
    text += "Without stamps and profiler: Plumbline's step took " +
            milliseconds(static_cast<std::int64_t>(*explanation.run_step_seconds * kMicrosecondsPerSecond + 0.5)) +
            " ms, the framework's as its log says.\n";
  return text;
}

}  // namespace

std::string explanation_text(const Explanation& explanation) {
  std::string text = explanation.configuration + "\n";
  if (!explanation.differences.empty())
    text += "DIFFERENT: " + differences_text(explanation.differences) + "\n";
  text += "ms of a step; the framework's: mean of " + std::to_string(explanation.traced_steps) +
          (explanation.on_gpu ? " steps of its GPU\n\n" : " steps\n\n");
  text += row("", "Plumbline", explanation.framework.substr(0, kFrameworkColumns - 2), "difference");
  for (const ExplainedRow& line : explanation.rows)
    text += row(std::string(name_of(line.category)), milliseconds(line.ours), milliseconds(line.theirs),
                milliseconds(line.difference(), true));
  text += row("step", milliseconds(explanation.ours), milliseconds(explanation.theirs),
              milliseconds(explanation.theirs - explanation.ours, true));
  return text + "\n" + verdict(explanation) + notes(explanation);
}

Json explanation_json(const Explanation& explanation) {
  const auto seconds = [](std::int64_t microseconds) {
    return static_cast<double>(microseconds) / kMicrosecondsPerSecond;
  };
  Json json{{"schema", "plumbline.explain/1"},
            {"configuration", explanation.configuration},
            {"framework", explanation.framework},
            {"differences", Json::array()},
            {"traced_steps", explanation.traced_steps},
            {"step_seconds",
             {{"ours", seconds(explanation.ours)},
              {"theirs", seconds(explanation.theirs)},
              {"difference", seconds(explanation.theirs - explanation.ours)}}},
            {"categories", Json::array()},
            {"unassigned_share", share(unassigned_of(explanation), explanation.theirs)},
            {"unassigned", Json::array()},
            {"hidden_communication_seconds", seconds(explanation.hidden_communication)},
            {"run_step_seconds",
             explanation.run_step_seconds ? Json(*explanation.run_step_seconds) : Json(nullptr)}};
  for (const Difference& difference : explanation.differences)
    json["differences"].push_back(
        {{"what", difference.what}, {"ours", difference.first}, {"theirs", difference.second}});
  for (const ExplainedRow& row : explanation.rows)
    json["categories"].push_back({{"name", key_of(row.category)},
                                  {"ours_seconds", seconds(row.ours)},
                                  {"theirs_seconds", seconds(row.theirs)},
                                  {"difference_seconds", seconds(row.difference())}});
  for (const auto& [name, time] : explanation.unassigned)
    json["unassigned"].push_back({{"name", name}, {"seconds", seconds(time)}});
  return json;
}

}  // namespace plumb
