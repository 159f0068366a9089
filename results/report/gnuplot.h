// Pictures by gnuplot, a program that is looked for in PATH when one is wanted, and pieces of its language
// that all plots share.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace plumb {

enum class PictureFormat { svg, png };

inline constexpr int kPictureHeight = 560;

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
  std::string text() const;
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

}  // namespace plumb
