// What all plots share of gnuplot and its language.
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/paths.h"
#include "base/process/spawn.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/unique_fd.h"
#include "results/report/plot.h"

namespace plumb {
namespace {

// Without a name, so nothing is left over whatever happens.
UniqueFile temporary_file() {
  UniqueFile file(std::tmpfile());
  if (!file)
    throw Error(ExitCode::io_error, "cannot create a temporary file for gnuplot: {}; make room in /tmp",
                std::strerror(errno));
  return file;
}

std::string contents(std::FILE* file) {
  std::rewind(file);
  return read_rest(file);
}

// True if gnuplot ended with exit code 0.
bool run_gnuplot(std::FILE* input, std::FILE* output, std::FILE* messages) {
  const pid_t child = spawn_program({"gnuplot", "--default-settings"},
                                    {fileno(input), fileno(output), fileno(messages)}, current_environment());
  if (child < 0)
    throw Error(ExitCode::unavailable,
                "--format svg and png need gnuplot, and it cannot be started ({}); install it (Debian: "
                "gnuplot-nox), or pass --format markdown or html",
                std::strerror(-child));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string terminal(PictureFormat format, int height) {
  const bool svg = format == PictureFormat::svg;
  return fmt::format(
      "set encoding utf8\nset terminal {} noenhanced size 900,{} background '#ffffff' font '{}'\n",
      svg ? "svg" : "pngcairo", height, svg ? "sans-serif,14" : "Sans,11");
}

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

std::string gnuplot_literal(std::string_view text) {
  const std::string json = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::string valid = Json::parse(json).get<std::string>();
  return fmt::format("'{}'", replaced(printable(valid, ' '), '\'', "’"));
}

std::string draw_with_gnuplot(const std::string& commands, PictureFormat format, int height) {
  const UniqueFile input = temporary_file(), output = temporary_file(), messages = temporary_file();
  const std::string script = terminal(format, height) + commands;
  if (std::fwrite(script.data(), 1, script.size(), input.get()) != script.size() ||
      std::fflush(input.get()) != 0)
    throw Error(ExitCode::io_error, "cannot write a temporary file for gnuplot; make room in /tmp");
  std::rewind(input.get());
  const bool drawn = run_gnuplot(input.get(), output.get(), messages.get());
  std::string picture = contents(output.get());
  if (drawn && !picture.empty()) return picture;
  // It prints the command, a pointer into it, then the reason.
  const std::string reason = last_line(contents(messages.get()));
  if (reason.find("unknown or ambiguous terminal") != std::string::npos)
    throw Error(ExitCode::unavailable,
                "this gnuplot cannot draw --format {}; install one with cairo (Debian: gnuplot-nox)",
                format == PictureFormat::svg ? "svg" : "png");
  throw Error(ExitCode::internal, "gnuplot did not draw the plot: {}",
              reason.empty() ? "it said nothing" : reason);
}

std::string plot_number(double value) {
  return std::isfinite(value) ? fmt::format("{:.9g}", value) : "NaN";
}

void DataBlock::add_row(std::initializer_list<double> values) {
  std::string row;
  for (const double value : values) append_part(row, plot_number(value), " ");
  rows_ += row + "\n";
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
