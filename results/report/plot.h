// Single plots of a report, for documents that can't hold a page.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "results/report/gnuplot.h"
#include "results/report/report_data.h"

namespace plumb {

enum class Plot { throughput, speedup, efficiency, bars, steps, profile, memory };

// Their names on the command line, "throughput" first.
std::vector<std::string> plot_names();
// Throws Error(usage) for a name that isn't one of these.
Plot plot_of_name(const std::string& name);

// gnuplot's commands with the data inside, without terminal and output. Throws Error(bad_data) where the data
// have nothing to show, and says what to run or to give so that they have.
//
// throughput, speedup, efficiency: own curves and the selected published ones over the number of devices,
//   with an ideal line; throughput with the intervals of its medians.
// bars: images/s of one device, own results beside PyTorch's and the best published.
// steps: step times of every run over iterations, warm-up shaded.
// profile: the longest instructions of the compute lane beside their rooflines; memory: the arena over an
//   iteration. Both of ReportData::shown_run, or else of the first run that has one.
std::string plot_commands(const ReportData& data, Plot plot);

// Throws Error(unavailable) without gnuplot.
std::string plot_picture(const ReportData& data, Plot plot, PictureFormat format);

// The parts of plot_commands().
std::string scaling_plot(const ReportData& data, Plot plot);  // throughput, speedup or efficiency
std::string bars_plot(const ReportData& data);
int bars_height(const ReportData& data);  // in pixels
std::string steps_plot(const ReportData& data);
std::string profile_plot(const ReportData& data);
std::string memory_plot(const ReportData& data);

// The run that the page shows, else the first one that `has` it; nullptr if none.
template <typename Has>
const ReportRun* run_with(const ReportData& data, Has has) {
  if (data.shown_run < data.runs.size() && has(data.runs[data.shown_run])) return &data.runs[data.shown_run];
  const auto first = std::ranges::find_if(data.runs, has);
  return first == data.runs.end() ? nullptr : &*first;
}

}  // namespace plumb
