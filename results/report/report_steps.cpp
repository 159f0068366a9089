#include "results/report/report_steps.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "base/error.h"
#include "base/text_table.h"
#include "base/units.h"

namespace plumb {
namespace {

double lost_seconds(const ProfiledInstruction& instruction) {
  return instruction.seconds - instruction.roofline_seconds;
}

std::string row(const ProfiledInstruction& instruction) {
  return fmt::format("| {} | {} | {:.4f} | {:.4f} | {} | {:.4f} | {} |\n", markdown_literal(instruction.name),
                     instruction.engine.empty() ? "-" : markdown_literal(instruction.engine),
                     instruction.seconds * kMilliseconds, instruction.roofline_seconds * kMilliseconds,
                     instruction.roofline_seconds > 0
                         ? fmt::format("{:.2f}", instruction.seconds / instruction.roofline_seconds)
                         : "-",
                     lost_seconds(instruction) * kMilliseconds, markdown_literal(instruction.bound_by));
}

std::string table(const ReportRun& run) {
  const RunProfile& profile = *run.profile;
  std::vector<ProfiledInstruction> instructions = profile.instructions;
  std::erase_if(instructions, [](const auto& instruction) { return instruction.lane != "compute"; });
  std::ranges::stable_sort(instructions, std::greater(), lost_seconds);
  std::string text = fmt::format(
      "**{}**\n\n{:.3f} ms with stamps, {:.3f} ms of them in instructions, roofline {:.3f} ms; most time "
      "lost first.\n\n"
      "| instruction | engine | measured ms | roofline ms | ratio | lost ms | bound by |\n"
      "| --- | --- | ---: | ---: | ---: | ---: | --- |\n",
      markdown_literal(configuration_text(run.configuration)), profile.iteration_seconds * kMilliseconds,
      profile.busy_seconds * kMilliseconds, profile.roofline_seconds * kMilliseconds);
  for (const ProfiledInstruction& instruction : instructions) text += row(instruction);
  if (profile.left_out > 0)
    text += fmt::format("\n{} shorter instructions are left out.\n", profile.left_out);
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
