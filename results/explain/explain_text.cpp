#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "results/explain/explain.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMicrosecondsPerSecond = 1e6;
constexpr std::size_t kFrameworkColumns = 28;

// 1234567 -> "1234.567", in milliseconds; with a sign if wanted.
std::string milliseconds(std::int64_t microseconds, bool sign = false) {
  return fmt::format("{}{}.{:03}",
                     microseconds < 0 ? "-"
                     : sign           ? "+"
                                      : "",
                     std::abs(microseconds) / 1000, std::abs(microseconds) % 1000);
}

std::string row(std::string_view name, const std::string& ours, const std::string& theirs,
                const std::string& difference) {
  return fmt::format("{:32.32}{:>16}{:>{}}{:>16}\n", name, ours, theirs, kFrameworkColumns, difference);
}

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// "PyTorch's step takes 12.3 ms more (41 %), the largest part in norm (+6.1 ms)."
std::string verdict(const Explanation& explanation) {
  const std::int64_t difference = explanation.theirs - explanation.ours;
  const auto size = [&](const ExplainedRow& row) {
    return difference < 0 ? -row.difference() : row.difference();
  };
  const auto largest = std::ranges::max_element(explanation.rows, {}, size);
  if (difference == 0 || largest == explanation.rows.end()) return "Both steps take the same time.\n";
  return fmt::format("{}: a step takes {} ms {} ({:.0f} %), the largest part in {} ({} ms).\n",
                     explanation.framework, milliseconds(std::abs(difference)),
                     difference > 0 ? "more" : "less", 100 * share(std::abs(difference), explanation.ours),
                     name_of(largest->category), milliseconds(largest->difference(), true));
}

std::string notes(const Explanation& explanation) {
  std::string text;
  if (explanation.merged_backward)
    text += "Convolutions: the trace doesn't tell the gradients of data from those of weights.\n";
  text +=
      "Norm: Plumbline's hold the activation and the addition behind them, so see norm and elementwise as "
      "one.\n";
  if (explanation.hidden_communication > 0)
    text += fmt::format("Communication beside other work, not in the table: {} ms of the framework's.\n",
                        milliseconds(explanation.hidden_communication));
  for (const auto& [name, time] : explanation.unassigned)
    text += fmt::format("Unassigned: {} ms in {}\n", milliseconds(time), name.substr(0, 60));
  if (explanation.run_step_seconds)
    text += fmt::format(
        "Without stamps and profiler: Plumbline's step took {} ms, the framework's as its log says.\n",
        milliseconds(std::llround(*explanation.run_step_seconds * kMicrosecondsPerSecond)));
  return text;
}

}  // namespace

std::string explanation_text(const Explanation& explanation) {
  std::string text = explanation.configuration + "\n";
  if (!explanation.differences.empty())
    text += fmt::format("DIFFERENT: {}\n", differences_text(explanation.differences));
  text += fmt::format("ms of a step; the framework's: mean of {} steps{}\n\n", explanation.traced_steps,
                      explanation.on_gpu ? " of its GPU" : "");
  text += row("", "Plumbline", explanation.framework.substr(0, kFrameworkColumns - 2), "difference");
  for (const ExplainedRow& line : explanation.rows)
    text += row(name_of(line.category), milliseconds(line.ours), milliseconds(line.theirs),
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
            {"unassigned_share", share(explanation.rows.back().theirs, explanation.theirs)},
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
