// Shared by all plots.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace plumb {

// Nine digits, whatever the locale; "NaN" for infinities and NaN, which gnuplot leaves out.
std::string plot_number(double value);

// "$name << end" with one row per entry.
class DataBlock {
 public:
  explicit DataBlock(std::string_view name) : name_(name) {}
  void add_row(std::initializer_list<double> values);
  bool empty() const { return rows_.empty(); }
  std::string text() const;
  std::string name() const { return "$" + name_; }

 private:
  std::string name_, rows_;
};

// Colours that stay apart for the colour-blind and in grey (Okabe & Ito 2008, with a grey for the yellow,
// which is too light for lines on white), taken in turn.
std::string_view plot_colour(std::size_t index);

// Title, labels of both axes, a thin frame, a grid, and the key above it.
std::string plot_frame(const std::string& title, const std::string& x_label, const std::string& y_label);

// A part of a plot and its line in the key. A long label goes on in lines of its own, for the key has one
// line for each part.
void add_part(std::vector<std::string>& parts, const std::string& drawn, const std::string& label);

// "plot a, b, c"
std::string plot_of(const std::vector<std::string>& parts);

}  // namespace plumb
