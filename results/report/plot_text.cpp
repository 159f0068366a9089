#include "results/report/plot_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "results/report/gnuplot.h"

namespace plumb {
namespace {

// A text in as many lines as it takes.
std::vector<std::string> lines_of(const std::string& text) {
  constexpr std::size_t kLongest = 80;  // letters; a picture has room for about a hundred
  std::vector<std::string> lines{""};
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > kLongest) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return lines;
}

std::string title_of(const std::string& text) {
  std::string title;
  for (const std::string& line : lines_of(text))
    title += (title.empty() ? "" : ".\"\\n\".") + gnuplot_literal(line);
  return title;
}

}  // namespace

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
  constexpr std::array<std::string_view, 8> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                     "#56b4e9", "#e69f00", "#000000", "#999999"};
  return kColours[index % kColours.size()];
}

std::string plot_frame(const std::string& title, const std::string& x_label, const std::string& y_label) {
  return "set title " + title_of(title) + "\nset xlabel " + gnuplot_literal(x_label) + "\nset ylabel " +
         gnuplot_literal(y_label) +
         "\nset border 3 linecolor rgb '#555555'\nset tics nomirror\n"
         "set grid linetype 1 linecolor rgb '#dddddd'\nset key above left Left reverse\n"
         "set datafile missing 'NaN'\n";
}

void add_part(std::vector<std::string>& parts, const std::string& drawn, const std::string& label) {
  const std::vector<std::string> lines = lines_of(label);
  parts.push_back(drawn + " title " + gnuplot_literal(lines.front()));
  for (std::size_t i = 1; i < lines.size(); ++i)
    parts.push_back("NaN with lines linecolor rgb '#ffffff' title " + gnuplot_literal(lines[i]));
}

std::string plot_of(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "plot " : ", \\\n  ") + part;
  return text + "\n";
}

}  // namespace plumb
