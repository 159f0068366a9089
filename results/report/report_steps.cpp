#include "results/report/report_steps.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "base/error.h"
#include "results/report/report_markdown.h"

namespace plumb {
namespace {

constexpr double kMilliseconds = 1e3;

template <typename... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

double lost_seconds(const ProfiledStep& step) {
  return step.seconds - step.roofline_seconds;
}

std::string row(const ProfiledStep& step) {
  const std::string ratio =
      step.roofline_seconds > 0 ? formatted("%.2f", step.seconds / step.roofline_seconds) : "-";
  return "| " + markdown_literal(step.name) + " | " +
         (step.engine.empty() ? "-" : markdown_literal(step.engine)) +
         formatted(" | %.4f | %.4f | ", step.seconds * kMilliseconds, step.roofline_seconds * kMilliseconds) +
         ratio + formatted(" | %.4f | ", lost_seconds(step) * kMilliseconds) +
         markdown_literal(step.bound_by) + " |\n";
}

std::string table(const ReportRun& run) {
  const RunProfile& profile = *run.profile;
  std::vector<ProfiledStep> steps;
  std::copy_if(profile.steps.begin(), profile.steps.end(), std::back_inserter(steps),
               [](const ProfiledStep& step) { return step.lane == "compute"; });
  std::stable_sort(steps.begin(), steps.end(), [](const ProfiledStep& a, const ProfiledStep& b) {
    return lost_seconds(a) > lost_seconds(b);
  });
  std::string text =
      "**" + markdown_literal(configuration_text(run.configuration)) + "**\n\n" +
      formatted("%.3f ms with stamps, %.3f ms of them in steps, roofline %.3f ms; most time lost first.\n\n",
                profile.iteration_seconds * kMilliseconds, profile.busy_seconds * kMilliseconds,
                profile.roofline_seconds * kMilliseconds) +
      "| step | engine | measured ms | roofline ms | ratio | lost ms | bound by |\n"
      "| --- | --- | ---: | ---: | ---: | ---: | --- |\n";
  for (const ProfiledStep& step : steps) text += row(step);
  if (profile.left_out > 0) text += formatted("\n%d shorter steps are left out.\n", profile.left_out);
  return text;
}

}  // namespace

std::string report_steps(const ReportData& data) {
  std::string text;
  for (const ReportRun& run : data.runs)
    if (run.profile) text += (text.empty() ? "" : "\n") + table(run);
  if (text.empty())
    throw Error(ExitCode::bad_data, "no run has a profile.json; give --profile to a run, or name others");
  return text;
}

}  // namespace plumb
