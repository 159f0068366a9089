// Throughput of one device as bars, a group for each kind of work.
#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/text_table.h"
#include "results/report/gnuplot.h"
#include "results/report/plot.h"

namespace plumb {
namespace {

// Rows are 1 apart.
constexpr double kHalfBar = 0.38, kGapBelowGroup = 0.5, kFootRow = 0.75, kTopRows = 0.8;
constexpr double kPixelsPerRow = 30;
constexpr double kNamesWidth = 0.3;  // of the picture
constexpr std::size_t kTitleLetters = 85, kFootLetters = 105;
constexpr const char* kSoft = "#555555";

// "9,817"; below 100 "5.05".
std::string bar_number(double value) {
  if (value < 100) return fmt::format("{:.2f}", value);
  std::string digits = fmt::format("{:.0f}", value);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string label(const std::string& text, const std::string& x, double row, const std::string& style) {
  return fmt::format("set label {} at {}, first {} left {}\n", gnuplot_literal(text), x, plot_number(row),
                     style);
}

class BarsPicture {
 public:
  explicit BarsPicture(const ReportData& data) {
    for (const std::string& line : wrapped_lines("Images/s per device: " + data.bars_common, kTitleLetters))
      add_heading(line, "font ',17'");
    rows_ += kGapBelowGroup;
    for (const ReportBars& group : data.bars) {
      if (data.bars.size() > 1) add_heading(group.label, "font ',15'");
      for (const ReportBar& bar : group.bars) add(bar);
      rows_ += kGapBelowGroup;
    }
    add_foot();
  }

  double rows() const { return rows_; }

  std::string commands() const {
    std::string text = fmt::format(
        "unset border\nunset tics\nunset key\n"
        "set lmargin at screen {}\nset rmargin at screen 0.99\nset tmargin 0\nset bmargin 0\n"
        "set xrange [0:{}]\nset yrange [{}:{}]\n{}",
        kNamesWidth, plot_number(longest_ * 1.12), plot_number(rows_), -kTopRows, labels_);
    std::vector<std::string> parts;
    for (std::size_t kind = 0; kind < blocks_.size(); ++kind) {
      if (blocks_[kind].empty()) continue;
      text += blocks_[kind].text();
      parts.push_back(fmt::format("{} using 1:2:3:4:5:6 with boxxyerror {} notitle", blocks_[kind].name(),
                                  kStyles[kind]));
    }
    return text + plot_of(parts);
  }

 private:
  // In the order of ReportBar::Kind.
  static constexpr std::array kStyles{"fillstyle solid noborder linecolor rgb '#0072b2'",
                                      "fillstyle solid noborder linecolor rgb '#d55e00'",
                                      "fillstyle empty linewidth 1.5 dashtype 2 linecolor rgb '#555555'"};

  void add_heading(const std::string& text, const std::string& font) {
    labels_ += label(text, kAtNames, rows_, font);
    rows_ += 1;
  }

  void add(const ReportBar& bar) {
    const double value = bar.images_per_second;
    blocks_[static_cast<std::size_t>(bar.kind)].add_row(
        {value / 2, rows_, 0, value, rows_ - kHalfBar, rows_ + kHalfBar});
    const bool marked = bar.kind == ReportBar::Kind::best;
    labels_ += label(bar.label + (marked ? mark(bar.differences) : ""), kAtNames, rows_, "offset 1.5,0");
    labels_ += label(bar_number(value), "first " + plot_number(value), rows_, "offset 0.5,0");
    longest_ = std::max(longest_, value);
    rows_ += 1;
  }

  // " [1]"; equal texts have one number.
  std::string mark(const std::string& text) {
    auto found = std::ranges::find(foot_, text);
    if (found == foot_.end()) found = foot_.insert(found, text);
    return fmt::format(" [{}]", found - foot_.begin() + 1);
  }

  void add_foot() {
    for (std::size_t i = 0; i < foot_.size(); ++i)
      for (const std::string& line : wrapped_lines(
               fmt::format("[{}] The best published per device, not the same work: {}", i + 1, foot_[i]),
               kFootLetters)) {
        labels_ += label(line, kAtNames, rows_, fmt::format("font ',11' textcolor rgb '{}'", kSoft));
        rows_ += kFootRow;
      }
  }

  static constexpr const char* kAtNames = "screen 0.01";
  std::array<DataBlock, 3> blocks_{DataBlock("own"), DataBlock("published"), DataBlock("best")};
  std::string labels_;
  std::vector<std::string> foot_;
  double rows_ = 0, longest_ = 0;
};

}  // namespace

std::string bars_plot(const ReportData& data) {
  if (data.bars.empty())
    throw Error(ExitCode::bad_data, "--plot bars needs a run on one device; name one of the case 1n1g");
  return BarsPicture(data).commands();
}

int bars_height(const ReportData& data) {
  return static_cast<int>(kPixelsPerRow * (BarsPicture(data).rows() + kTopRows));
}

}  // namespace plumb
