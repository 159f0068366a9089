#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "results/report/gnuplot.h"
#include "results/report/palette.h"
#include "results/report/plot.h"

namespace plumb {
namespace {

std::optional<double> value_of(const ReportPoint& point, Plot plot) {
  if (plot == Plot::throughput) return point.median_images_per_second;
  if (plot == Plot::speedup) return point.speedup;
  return point.efficiency ? std::optional(*point.efficiency * 100) : std::nullopt;
}

struct Extent {
  double low = 0, high = 0;
  void add(double value) {
    low = low == 0 ? value : std::min(low, value);
    high = std::max(high, value);
  }
};

// Devices, value, and both ends of the median's interval where the plot has one, else the value again.
DataBlock curve_block(const ReportCurve& curve, Plot plot, std::string_view name, Extent& values,
                      std::set<int>& devices) {
  DataBlock block(name);
  for (const ReportPoint& point : curve.points) {
    const std::optional<double> value = value_of(point, plot);
    if (!value || !(*value > 0)) continue;
    const bool interval = plot == Plot::throughput && point.interval;
    const double low = interval ? point.interval->low : *value;
    const double high = interval ? point.interval->high : *value;
    block.add_row({static_cast<double>(point.devices), *value, low, high});
    values.add(low);
    values.add(high);
    devices.insert(point.devices);
  }
  return block;
}

// Drawn as published ones are: dashed, without intervals.
std::vector<ReportCurve> predicted_curves(const ReportData& data) {
  std::vector<ReportCurve> curves;
  for (const ReportCurve& curve : data.curves)
    if (!curve.predicted.empty())
      curves.push_back({.label = curve.label + ", predicted", .points = curve.predicted, .published = true});
  return curves;
}

std::string curve_part(const DataBlock& block, const ReportCurve& curve, std::size_t index) {
  return fmt::format("{} using {} linecolor rgb '{}'", block.name(),
                     curve.published ? "1:2 with linespoints dashtype 3 linewidth 1 pointtype 6"
                                     : "1:2:3:4 with yerrorlines linewidth 2 pointtype 7",
                     palette_color(index));
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

std::string axes(Plot plot, Extent values, const std::set<int>& devices) {
  const double fewest = *devices.begin(), most = *devices.rbegin();
  std::string ticks;
  for (const int count : devices) append_part(ticks, fmt::format("'{}' {}", count, count));
  const std::string y_axis =
      plot == Plot::efficiency
          ? fmt::format("set yrange [0:{}]\n", plot_number(std::max(105.0, values.high * 1.05)))
          : fmt::format("set logscale y\nset yrange [{}:{}]\n", plot_number(values.low / 1.3),
                        plot_number(values.high * 1.3));
  return fmt::format("set logscale x 2\nset xrange [{}:{}]\nset xtics ({})\n{}", plot_number(fewest / 1.15),
                     plot_number(most * 1.15), ticks, y_axis);
}

}  // namespace

std::string scaling_plot(const ReportData& data, Plot plot) {
  std::vector<const ReportCurve*> curves;
  for (const ReportCurve& curve : data.curves) curves.push_back(&curve);
  const std::vector<ReportCurve> predicted = predicted_curves(data);
  for (const ReportCurve& curve : predicted) curves.push_back(&curve);
  for (const ReportCurve& curve : data.published)
    if (curve.selected) curves.push_back(&curve);
  Extent values;
  std::set<int> devices;
  std::string blocks;
  std::vector<std::string> parts{ideal_part(data, plot)};
  bool any_own = false;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const DataBlock block = curve_block(*curves[i], plot, fmt::format("curve{}", i), values, devices);
    if (block.empty()) continue;
    any_own = any_own || !curves[i]->published;
    blocks += block.text();
    add_part(parts, curve_part(block, *curves[i], i), curves[i]->label);
  }
  if (!any_own)
    throw Error(ExitCode::bad_data,
                "--plot speedup and efficiency need runs on one device to relate the others to; give a run "
                "of the case 1n1g with the same batch and precision, or take --plot throughput");
  const std::string frame =
      plot == Plot::throughput ? plot_frame("Throughput", "devices", "images/s, all devices")
      : plot == Plot::speedup  ? plot_frame("Speedup against one device", "devices", "speedup")
                               : plot_frame("Efficiency: speedup / devices", "devices", "%");
  return frame + axes(plot, values, devices) + blocks + plot_of(parts);
}

}  // namespace plumb
