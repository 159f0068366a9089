#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/units.h"
#include "results/report/gnuplot.h"
#include "results/report/palette.h"
#include "results/report/plot.h"

namespace plumb {
namespace {

struct Highest {
  double window_ms = 0, warmup_ms = 0;
};

// Iteration, the first one 0, and ms; an entry of several iterations stands in their middle.
DataBlock steps_block(const StepTimes& steps, std::size_t index, Highest& highest) {
  DataBlock block(fmt::format("run{}", index));
  for (std::size_t i = 0; i < steps.median_seconds.size(); ++i) {
    const double first = static_cast<double>(static_cast<std::int64_t>(i) * steps.per_entry);
    block.add_row(
        {first + static_cast<double>(steps.per_entry - 1) / 2, steps.median_seconds[i] * kMilliseconds});
    double& high = first < static_cast<double>(steps.warmup) ? highest.warmup_ms : highest.window_ms;
    high = std::max(high, steps.max_seconds[i] * kMilliseconds);
  }
  return block;
}

// Shades the warm-up that all runs share, and keeps its slow steps from pressing the others flat.
std::string range_and_warmup(const Highest& highest, std::int64_t warmup, bool cut) {
  std::string text;
  if (warmup > 0)
    text = fmt::format(
        "set object 1 rectangle from graph 0, graph 0 to first {}, graph 1 fillcolor rgb '#eeeeee' "
        "fillstyle solid noborder behind\n",
        plot_number(static_cast<double>(warmup) - 0.5));
  return fmt::format("{}set yrange [0:{}]\n", text, cut ? plot_number(highest.window_ms * 1.25) : "*");
}

}  // namespace

std::string steps_plot(const ReportData& data) {
  Highest highest;
  std::set<std::int64_t> warmups;
  std::string blocks;
  std::vector<std::string> parts;
  std::size_t color = 0;
  for (const ReportCurve& curve : data.curves) {
    for (const ReportPoint& point : curve.points) {
      bool named = false;
      for (const std::size_t index : point.runs) {
        const ReportRun& run = data.runs.at(index);
        if (!run.steps || run.steps->median_seconds.empty()) continue;
        warmups.insert(run.steps->warmup);
        const DataBlock block = steps_block(*run.steps, index, highest);
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
  }
  if (parts.empty())
    throw Error(ExitCode::bad_data,
                "--plot steps needs run folders, in which every step's time is kept; logs have none: give "
                "the folder that --out named");
  const std::int64_t warmup = warmups.size() == 1 ? *warmups.begin() : 0;
  const bool cut = highest.window_ms > 0 && highest.warmup_ms > highest.window_ms * 1.25;
  std::string x_label = "iteration";
  if (warmup > 0) x_label += " (gray: warm-up, left out of all figures)";
  if (cut)
    x_label += fmt::format("; highest before the window: {} ms", plot_number(std::round(highest.warmup_ms)));
  return plot_frame("Step time", x_label, "ms") + range_and_warmup(highest, warmup, cut) + blocks +
         plot_of(parts);
}

}  // namespace plumb
