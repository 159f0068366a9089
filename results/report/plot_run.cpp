// Plots of one run: its longest instructions, its memory.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "results/record/lanes.h"
#include "results/report/gnuplot.h"
#include "results/report/palette.h"
#include "results/report/plot.h"

namespace plumb {
namespace {

constexpr std::size_t kMostBars = 25;
constexpr double kMebibyte = 1 << 20;

// Collectives are left out: they go on beside the others, and most of their time is waiting.
std::vector<ProfiledInstruction> compute_instructions(const RunProfile& profile) {
  std::vector<ProfiledInstruction> instructions = profile.instructions;
  std::erase_if(instructions, [](const auto& instruction) { return !computes(instruction.lane); });
  return instructions;
}

// One bar per instruction, the longest at the top: begin, end, lower and upper edge.
void add_bar(DataBlock& block, double ms, double row, double half_height) {
  block.add_row({ms / 2, row, 0, ms, row - half_height, row + half_height});
}

std::string bars(const DataBlock& block, const std::string& color, const std::string& title) {
  return fmt::format(
      "{} using 1:2:3:4:5:6 with boxxyerror fillstyle solid noborder linecolor rgb '{}' title {}",
      block.name(), color, gnuplot_literal(title));
}

// The run that the page shows, else the first one that `has` it; nullptr if none.
template <typename Has>
const ReportRun* run_with(const ReportData& data, Has has) {
  if (data.shown_run < data.runs.size() && has(data.runs[data.shown_run])) return &data.runs[data.shown_run];
  const auto first = std::ranges::find_if(data.runs, has);
  return first == data.runs.end() ? nullptr : &*first;
}

}  // namespace

std::string profile_plot(const ReportData& data) {
  const ReportRun* run = run_with(data, [](const ReportRun& candidate) {
    return candidate.profile && !compute_instructions(*candidate.profile).empty();
  });
  if (run == nullptr)
    throw Error(ExitCode::bad_data,
                "--plot profile needs a run folder with a profile.json; make one with --profile");
  const std::vector<ProfiledInstruction> instructions = compute_instructions(*run->profile);
  const std::size_t count = std::min(instructions.size(), kMostBars);
  DataBlock measured("measured"), roofline("roofline");
  std::string names;
  for (std::size_t i = 0; i < count; ++i) {
    const double row = static_cast<double>(count - 1 - i);
    add_bar(measured, instructions[i].seconds * 1e3, row, 0.4);
    add_bar(roofline, instructions[i].roofline_seconds * 1e3, row, 0.2);
    // A label of an axis is a format of printf.
    const std::string name = replaced(instructions[i].name, '%', "%%");
    append_part(names, fmt::format("{} {}", gnuplot_literal(name), plot_number(row)));
  }
  return fmt::format(
      "{}set ytics ({}) font ',10'\nset yrange [-1:{}]\nset xrange [0:*]\n{}{}{}",
      plot_frame(fmt::format("The {} longest compute instructions: {}", count, run->label),
                 "ms per iteration", ""),
      names, count, measured.text(), roofline.text(),
      plot_of({bars(measured, "#56b4e9", "measured"),
               bars(roofline, "#d55e00", "least time that the device's peaks allow (roofline)")}));
}

std::string memory_plot(const ReportData& data) {
  const ReportRun* run = run_with(
      data, [](const ReportRun& candidate) { return candidate.memory && !candidate.memory->names.empty(); });
  if (run == nullptr)
    throw Error(ExitCode::bad_data, "--plot memory needs a run folder with its program.json");
  const MemoryUse& use = *run->memory;
  std::vector<double> below(use.names.size());  // MiB of the roles drawn so far
  std::string blocks;
  std::vector<std::string> parts;
  for (const auto& [role, bytes] : use.role_bytes) {
    DataBlock rows(fmt::format("role{}", parts.size()));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const double low = std::exchange(below[i], below[i] + static_cast<double>(bytes[i]) / kMebibyte);
      rows.add_row({static_cast<double>(static_cast<std::int64_t>(i) * use.per_entry), low, below[i]});
    }
    blocks += rows.text();
    parts.push_back(fmt::format("{} using 1:2:3 with filledcurves fillcolor rgb '{}' title {}", rows.name(),
                                palette_color(palette_place(role)),
                                gnuplot_literal(replaced(role, '_', " "))));
  }
  return fmt::format("{}set xrange [0:{}]\nset yrange [0:*]\n{}{}",
                     plot_frame("Memory in use: " + run->label, "instruction of the iteration", "MiB"),
                     plot_number(static_cast<double>(use.instructions)), blocks, plot_of(parts));
}

}  // namespace plumb
