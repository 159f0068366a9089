// Single plots of a report, for documents that can't hold a page: by gnuplot, a program that is looked for in
// PATH when one is wanted.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "results/report/report_data.h"

namespace plumb {

enum class PictureFormat { svg, png };
enum class Plot { throughput, speedup, efficiency, bars, steps, profile, memory };

// Their names on the command line, "throughput" first.
std::vector<std::string> plot_names();
// Throws Error(usage) for a name that isn't one of these.
Plot plot_of_name(const std::string& name);

inline constexpr int kPictureHeight = 560;

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

// The bytes of a picture, 900 pixels wide. `commands`: gnuplot's language, without terminal and output. No
// shell is involved, and no start-up file of the user's is read. Throws Error(unavailable) if gnuplot isn't
// there or lacks the format, Error(internal) with its own words if it refuses the commands.
std::string draw_with_gnuplot(const std::string& commands, PictureFormat format, int height = kPictureHeight);

// As a literal in single quotes, which become typographic ones inside, and in which gnuplot expands nothing:
// neither `commands` nor @macros nor escapes. Control characters become blanks, bytes that aren't UTF-8
// become U+FFFD. Terminals must be told `noenhanced`, which draw_with_gnuplot does.
std::string gnuplot_literal(std::string_view text);

// Nine digits, whatever the locale; "NaN" for infinities and NaN, which gnuplot leaves out.
std::string plot_number(double value);

// "$name << end" with one row per entry.
class DataBlock {
 public:
  explicit DataBlock(std::string_view name) : name_(name) {}
  void add_row(std::initializer_list<double> values);
  bool empty() const { return rows_.empty(); }
  std::string text() const { return name() + " << end_of_data\n" + rows_ + "end_of_data\n"; }
  std::string name() const { return "$" + name_; }

 private:
  std::string name_, rows_;
};

// Title, labels of both axes, a thin frame, a grid, and the key above it.
std::string plot_frame(const std::string& title, const std::string& x_label, const std::string& y_label);

// A part of a plot and its line in the key. A long label goes on in lines of its own, for the key has one
// line for each part.
void add_part(std::vector<std::string>& parts, const std::string& drawn, const std::string& label);

// "plot a, b, c"
std::string plot_of(const std::vector<std::string>& parts);

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
  return find_in(data.runs, true, has);
}

}  // namespace plumb
