// Plots by their names; those of lines: scaling over devices, step times over iterations, memory over
// instructions.
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "results/report/palette.h"
#include "results/report/plot.h"

namespace plumb {
namespace {

// In the order of Plot.
constexpr std::array kNames{"throughput", "speedup", "efficiency", "bars", "steps", "profile", "memory"};
constexpr double kMebibyte = 1 << 20;
constexpr double kRoomAbove = 1.25;  // the highest step of the window

std::optional<double> value_of(const ReportPoint& point, Plot plot) {
  if (plot == Plot::throughput) return point.median_images_per_second;
  if (plot == Plot::speedup) return point.speedup;
  return point.efficiency ? std::optional(*point.efficiency * 100) : std::nullopt;
}

// Devices, value, and both ends of the median's interval where the plot has one, else the value again.
DataBlock curve_block(const ReportCurve& curve, Plot plot, std::string_view name) {
  DataBlock block(name);
  for (const ReportPoint& point : curve.points) {
    const std::optional<double> value = value_of(point, plot);
    if (!value || !(*value > 0)) continue;
    const bool interval = plot == Plot::throughput && point.interval;
    block.add_row({static_cast<double>(point.devices), *value, interval ? point.interval->low : *value,
                   interval ? point.interval->high : *value});
  }
  return block;
}

// Own curves, their predictions, which are drawn as published ones are, and the published ones that are
// selected.
std::vector<ReportCurve> drawn_curves(const ReportData& data) {
  std::vector<ReportCurve> curves = data.curves;
  for (const ReportCurve& curve : data.curves)
    if (!curve.predicted.empty())
      curves.push_back({.label = curve.label + ", predicted", .points = curve.predicted, .published = true});
  std::ranges::copy_if(data.published, std::back_inserter(curves), &ReportCurve::selected);
  return curves;
}

// Linear scaling from the first point of the own curves.
std::string ideal_part(const ReportData& data, Plot plot) {
  const std::string style = " with lines dashtype 2 linecolor rgb '#777777' title 'ideal'";
  if (plot == Plot::speedup) return "x" + style;
  if (plot == Plot::efficiency) return "100" + style;
  double per_device = 0;
  for (const ReportCurve& curve : data.curves)
    if (!curve.points.empty())
      per_device =
          std::max(per_device, curve.points.front().median_images_per_second / curve.points.front().devices);
  return "x*" + plot_number(per_device) + style;
}

}  // namespace

std::string scaling_plot(const ReportData& data, Plot plot) {
  std::string blocks;
  std::vector<std::string> parts{ideal_part(data, plot)};
  bool any_own = false;
  const std::vector<ReportCurve> curves = drawn_curves(data);
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const DataBlock block = curve_block(curves[i], plot, fmt::format("curve{}", i));
    if (block.empty()) continue;
    any_own = any_own || !curves[i].published;
    blocks += block.text();
    add_part(parts,
             fmt::format("{} using {} linecolor rgb '{}'", block.name(),
                         curves[i].published ? "1:2 with linespoints dashtype 3 linewidth 1 pointtype 6"
                                             : "1:2:3:4 with yerrorlines linewidth 2 pointtype 7",
                         palette_color(i)),
             curves[i].label);
  }
  if (!any_own)
    throw Error(ExitCode::bad_data,
                "--plot speedup and efficiency need runs on one device; pass a run of the case 1n1g with the "
                "same batch and precision, or --plot throughput");
  const std::string frame =
      plot == Plot::throughput ? plot_frame("Throughput", "devices", "images/s, all devices")
      : plot == Plot::speedup  ? plot_frame("Speedup against one device", "devices", "speedup")
                               : plot_frame("Efficiency: speedup / devices", "devices", "%");
  return fmt::format("{}set logscale x 2\nset xrange [0.9:]\n{}{}{}", frame,
                     plot == Plot::efficiency ? "set yrange [0:105<*]\n" : "set logscale y\n", blocks,
                     plot_of(parts));
}

std::string steps_plot(const ReportData& data) {
  double highest = 0;  // ms, of all windows
  std::set<std::int64_t> warmups;
  std::string blocks;
  std::vector<std::string> parts;
  std::size_t color = 0;
  for (const ReportCurve& curve : data.curves)
    for (const ReportPoint& point : curve.points) {
      bool named = false;
      for (const std::size_t index : point.runs) {
        const auto& steps = data.runs.at(index).steps;
        if (!steps || steps->median_seconds.empty()) continue;
        warmups.insert(steps->warmup);
        // Iteration, the first one 0, and ms; an entry of several iterations stands in their middle.
        DataBlock block(fmt::format("run{}", index));
        for (std::size_t i = 0; i < steps->median_seconds.size(); ++i) {
          const auto first = static_cast<std::int64_t>(i) * steps->per_entry;
          block.add_row({static_cast<double>(first) + static_cast<double>(steps->per_entry - 1) / 2,
                         steps->median_seconds[i] * kMilliseconds});
          if (first >= steps->warmup) highest = std::max(highest, steps->max_seconds[i] * kMilliseconds);
        }
        blocks += block.text();
        const std::string drawn = fmt::format("{} using 1:2 with lines linewidth 1.5 linecolor rgb '{}'",
                                              block.name(), palette_color(color));
        if (named)
          parts.push_back(drawn + " notitle");
        else
          add_part(parts, drawn, curve.label + ", " + point.case_name);
        named = true;
      }
      if (named) ++color;
    }
  if (parts.empty())
    throw Error(
        ExitCode::bad_data,
        "--plot steps needs run folders, as logs lack the time of each step; pass the folder of --output");
  const std::int64_t warmup = warmups.size() == 1 ? *warmups.begin() : 0;
  std::string frame = plot_frame(
      "Step time", warmup > 0 ? "iteration (gray: warm-up, left out of all figures)" : "iteration", "ms");
  if (warmup > 0)
    frame += fmt::format(
        "set object 1 rectangle from graph 0, graph 0 to first {}, graph 1 fillcolor rgb '#eeeeee' "
        "fillstyle solid noborder behind\n",
        plot_number(static_cast<double>(warmup) - 0.5));
  return fmt::format("{}set yrange [0:{}]\n{}{}", frame,
                     highest > 0 ? plot_number(highest * kRoomAbove) : "*", blocks, plot_of(parts));
}

std::string memory_plot(const ReportData& data) {
  const ReportRun* run =
      run_with(data, [](const ReportRun& one) { return one.memory && !one.memory->names.empty(); });
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
    add_part(parts,
             fmt::format("{} using 1:2:3 with filledcurves fillcolor rgb '{}'", rows.name(),
                         palette_color(palette_place(role))),
             replaced(role, '_', " "));
  }
  return fmt::format("{}set xrange [0:{}]\nset yrange [0:*]\n{}{}",
                     plot_frame("Memory in use: " + run->label, "op of the iteration", "MiB"),
                     plot_number(static_cast<double>(use.instructions)), blocks, plot_of(parts));
}

std::vector<std::string> plot_names() {
  return {kNames.begin(), kNames.end()};
}

Plot plot_of_name(const std::string& name) {
  const auto known = std::ranges::find(kNames, name);
  if (known == kNames.end()) throw Error(ExitCode::usage, "--plot {}: expected one of those in --help", name);
  return static_cast<Plot>(known - kNames.begin());
}

std::string plot_commands(const ReportData& data, Plot plot) {
  if (plot == Plot::bars) return bars_plot(data);
  if (plot == Plot::steps) return steps_plot(data);
  if (plot == Plot::profile) return profile_plot(data);
  if (plot == Plot::memory) return memory_plot(data);
  return scaling_plot(data, plot);
}

std::string plot_picture(const ReportData& data, Plot plot, PictureFormat format) {
  return draw_with_gnuplot(plot_commands(data, plot), format,
                           plot == Plot::bars ? bars_height(data) : kPictureHeight);
}

}  // namespace plumb
