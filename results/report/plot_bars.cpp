// Plots of horizontal bars: throughput of one device, the longest instructions of a run.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "results/record/program_format.h"
#include "results/report/plot.h"

namespace plumb {
namespace {

constexpr std::size_t kMostInstructions = 25;
constexpr double kHalfBar = 0.38, kHalfInnerBar = 0.2;  // rows are 1 apart
constexpr int kPixelsPerRow = 28, kPixelsAround = 150;

// Rows of named bars in several series, the first at the top.
class BarRows {
 public:
  struct Series {
    std::string title, style;
  };
  explicit BarRows(std::vector<Series> series) : series_(std::move(series)) {
    for (std::size_t i = 0; i < series_.size(); ++i) blocks_.emplace_back(fmt::format("bars{}", i));
  }

  void add_row(const std::string& name) {
    // A label of an axis is a format of printf.
    append_part(names_, fmt::format("{} {}", gnuplot_literal(replaced(name, '%', "%%")), ++row_));
  }
  void add_bar(std::size_t series, double value, double half = kHalfBar) {
    blocks_[series].add_row({value / 2, row_, 0, value, row_ - half, row_ + half});
  }
  void add_text(double at, const std::string& text) {
    texts_ += fmt::format("set label {} at {}, {} left offset 0.5,0\n", gnuplot_literal(text),
                          plot_number(at), row_);
  }
  void add_text_row(const std::string& text) {
    add_row("");
    add_text(0, text);
  }
  int height() const { return kPixelsAround + kPixelsPerRow * static_cast<int>(row_); }

  std::string commands(const std::string& frame) const {
    std::string text = fmt::format(
        "{}set ytics ({}) font ',11' scale 0\nset yrange [{}:0]\nset xrange [0:*]\nset grid noytics\n{}",
        frame, names_, row_ + 1, texts_);
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < series_.size(); ++i) {
      if (blocks_[i].empty()) continue;
      text += blocks_[i].text();
      add_part(parts,
               fmt::format("{} using 1:2:3:4:5:6 with boxxyerror {}", blocks_[i].name(), series_[i].style),
               series_[i].title);
    }
    return text + plot_of(parts);
  }

 private:
  std::vector<Series> series_;
  std::vector<DataBlock> blocks_;
  std::string names_, texts_;
  double row_ = 0;
};

BarRows rows_of(const ReportData& data) {
  BarRows rows({{"measured", "fillstyle solid noborder linecolor rgb '#0072b2'"},
                {"published, the same work", "fillstyle solid noborder linecolor rgb '#d55e00'"},
                {"best published, other work", "fillstyle empty dashtype 2 linecolor rgb '#555555'"}});
  for (const ReportBars& group : data.bars) {
    if (data.bars.size() > 1) rows.add_text_row(group.label);
    for (const ReportBar& bar : group.bars) {
      rows.add_row(bar.label);
      rows.add_bar(static_cast<std::size_t>(bar.kind), bar.images_per_second);
      rows.add_text(bar.images_per_second,
                    fmt::format("{:.{}f}", bar.images_per_second, bar.images_per_second < 100 ? 2 : 0));
      if (bar.kind == ReportBar::Kind::best) rows.add_text_row("which is of " + bar.differences);
    }
  }
  return rows;
}

}  // namespace

std::string bars_plot(const ReportData& data) {
  if (data.bars.empty())
    throw Error(ExitCode::bad_data, "--plot bars needs a run on one device; pass one of the case 1n1g");
  return rows_of(data).commands(plot_frame("Images/s per device: " + data.bars_common, "images/s", "") +
                                "set rmargin 8\n");
}

int bars_height(const ReportData& data) {
  return rows_of(data).height();
}

std::string profile_plot(const ReportData& data) {
  const ReportRun* run = run_with(data, [](const ReportRun& one) {
    return one.profile &&
           std::ranges::count(one.profile->instructions, kComputeLane, &ProfiledInstruction::lane) > 0;
  });
  if (run == nullptr)
    throw Error(ExitCode::bad_data,
                "--plot profile needs a run folder with a profile.json; run with --profile");
  BarRows rows({{"measured", "fillstyle solid noborder linecolor rgb '#56b4e9'"},
                {"least time that the device's peaks allow (roofline)",
                 "fillstyle solid noborder linecolor rgb '#d55e00'"}});
  std::size_t count = 0;
  // Collectives are left out: they go on beside the others, and most of their time is waiting.
  for (const ProfiledInstruction& instruction : run->profile->instructions) {
    if (instruction.lane != kComputeLane) continue;
    if (++count > kMostInstructions) break;
    rows.add_row(instruction.name);
    rows.add_bar(0, instruction.seconds * kMilliseconds);
    rows.add_bar(1, instruction.roofline_seconds * kMilliseconds, kHalfInnerBar);
  }
  return rows.commands(plot_frame(
      fmt::format("The {} longest compute ops: {}", std::min(count, kMostInstructions), run->label),
      "ms per iteration", ""));
}

}  // namespace plumb
