#include "results/report/plot_text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "results/report/gnuplot.h"

namespace plumb {

std::string plot_number(double value) {
  if (!std::isfinite(value)) return "NaN";
  std::array<char, 32> text;
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 9);
  return {text.data(), end};
}

void DataBlock::add_row(std::initializer_list<double> values) {
  const char* separator = "";
  for (const double value : values) {
    rows_ += separator + plot_number(value);
    separator = " ";
  }
  rows_ += "\n";
}

std::string DataBlock::text() const {
  return "$" + name_ + " << end_of_data\n" + rows_ + "end_of_data\n";
}

std::string_view plot_colour(std::size_t index) {
  constexpr std::array<std::string_view, 7> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                     "#56b4e9", "#e69f00", "#000000"};
  return kColours[index % kColours.size()];
}

std::string plot_frame(const std::string& title, const std::string& x_label, const std::string& y_label) {
  return "set title " + gnuplot_literal(title) + "\nset xlabel " + gnuplot_literal(x_label) +
         "\nset ylabel " + gnuplot_literal(y_label) +
         "\nset border 3 linecolor rgb '#555555'\nset tics nomirror\n"
         "set grid linetype 1 linecolor rgb '#dddddd'\nset key above left Left reverse\n"
         "set datafile missing 'NaN'\n";
}

std::string plot_of(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "plot " : ", \\\n  ") + part;
  return text + "\n";
}

}  // namespace plumb
