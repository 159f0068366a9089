#include "results/report/report_steps.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "results/report/report_markdown.h"

namespace plumb {
namespace {

double lost_seconds(const ProfiledStep& step) {
  return step.seconds - step.roofline_seconds;
}

std::string row(const ProfiledStep& step) {
  return fmt::format(
      "| {} | {} | {:.4f} | {:.4f} | {} | {:.4f} | {} |\n", markdown_literal(step.name),
      step.engine.empty() ? "-" : markdown_literal(step.engine), step.seconds * kMilliseconds,
      step.roofline_seconds * kMilliseconds,
      step.roofline_seconds > 0 ? fmt::format("{:.2f}", step.seconds / step.roofline_seconds) : "-",
      lost_seconds(step) * kMilliseconds, markdown_literal(step.bound_by));
}

std::string table(const ReportRun& run) {
  const RunProfile& profile = *run.profile;
  std::vector<ProfiledStep> steps;
  std::copy_if(profile.steps.begin(), profile.steps.end(), std::back_inserter(steps),
               [](const ProfiledStep& step) { return step.lane == "compute"; });
  std::stable_sort(steps.begin(), steps.end(), [](const ProfiledStep& a, const ProfiledStep& b) {
    return lost_seconds(a) > lost_seconds(b);
  });
  std::string text = fmt::format(
      "**{}**\n\n{:.3f} ms with stamps, {:.3f} ms of them in steps, roofline {:.3f} ms; most time lost "
      "first.\n\n"
      "| step | engine | measured ms | roofline ms | ratio | lost ms | bound by |\n"
      "| --- | --- | ---: | ---: | ---: | ---: | --- |\n",
      markdown_literal(configuration_text(run.configuration)), profile.iteration_seconds * kMilliseconds,
      profile.busy_seconds * kMilliseconds, profile.roofline_seconds * kMilliseconds);
  for (const ProfiledStep& step : steps) text += row(step);
  if (profile.left_out > 0) text += fmt::format("\n{} shorter steps are left out.\n", profile.left_out);
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
