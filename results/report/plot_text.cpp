// Pieces of gnuplot's language that all plots share.
#include <cmath>

#include "base/text.h"
#include "base/text_table.h"
#include "results/report/gnuplot.h"

namespace plumb {
namespace {

// A picture has room for about a hundred letters.
std::vector<std::string> lines_of(const std::string& text) {
  return wrapped_lines(text, 80);
}

std::string title_of(const std::string& text) {
  std::string title;
  for (const std::string& line : lines_of(text)) append_part(title, gnuplot_literal(line), ".\"\\n\".");
  return title;
}

}  // namespace

std::string plot_number(double value) {
  return std::isfinite(value) ? fmt::format("{:.9g}", value) : "NaN";
}

void DataBlock::add_row(std::initializer_list<double> values) {
  std::string row;
  for (const double value : values) append_part(row, plot_number(value), " ");
  rows_ += row + "\n";
}

std::string DataBlock::text() const {
  return fmt::format("${} << end_of_data\n{}end_of_data\n", name_, rows_);
}

std::string plot_frame(const std::string& title, const std::string& x_label, const std::string& y_label) {
  return fmt::format(
      "set title {}\nset xlabel {}\nset ylabel {}\n"
      "set border 3 linecolor rgb '#555555'\nset tics nomirror\n"
      "set grid linetype 1 linecolor rgb '#dddddd'\nset key above left Left reverse\n"
      "set datafile missing 'NaN'\n",
      title_of(title), gnuplot_literal(x_label), gnuplot_literal(y_label));
}

void add_part(std::vector<std::string>& parts, const std::string& drawn, const std::string& label) {
  const std::vector<std::string> lines = lines_of(label);
  parts.push_back(drawn + " title " + gnuplot_literal(lines.front()));
  for (std::size_t i = 1; i < lines.size(); ++i)
    parts.push_back("NaN with lines linecolor rgb '#ffffff' title " + gnuplot_literal(lines[i]));
}

std::string plot_of(const std::vector<std::string>& parts) {
  return parts.empty() ? "\n" : fmt::format("plot {}\n", fmt::join(parts, ", \\\n  "));
}

}  // namespace plumb
