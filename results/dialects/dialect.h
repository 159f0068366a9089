// A log dialect: how the lines of one framework's logs give a run's speed. Each dialect is one small file;
// what they share (reading, checking that the log is whole, finding out a dialect) is here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/line_reader.h"

namespace plumb {

// Iterations warmup … iterations-1 count. Defaults: those of DLPerf's scripts (commit c89430b).
struct Window {
  std::int64_t iterations = 120, warmup = 20;
};

// What is wrong with a log.
enum class Flaw { unreadable, misnamed, unfinished, empty, truncated, malformed, duplicated, mixed };
std::string_view flaw_name(Flaw flaw);

struct Defect {
  Flaw flaw;
  std::string reason;  // what is wrong, without the file's name
};

// What one line says.
struct LineReading {
  std::int64_t index = 0;    // the iteration as the line numbers it
  double value = 0;          // speed in images/s, or a stamp in microseconds since 1970
  std::string_view problem;  // not empty: the line belongs to the dialect but can't be read
};

// What a published script makes of one log. `no_end`: it found no end line and counts 0 (an int, which its
// JSON shows).
struct PublishedFigure {
  double images_per_second = 0;
  bool no_end = false;
};

struct Dialect {
  std::string_view name;                 // "paddle_speed"
  std::string_view source;               // what writes such lines and what reads them
  std::int64_t highest_first_index = 0;  // the first line's index: 0 … this
  bool values_are_stamps = false;        // values never fall
  bool averages_in_python = false;  // run figures and averages are rounded by round_decimal, else round_numpy
  bool published_reads_any_case = false;  // the script never uses the number of devices

  // Nothing if the line isn't one of the dialect's. `images_per_step`: over all ranks.
  std::optional<LineReading> (*read_line)(std::string_view line, double images_per_step) = nullptr;
  // Images per second from the values of iterations 0 … window.iterations-1, not rounded.
  double (*speed)(std::span<const double> values, const Window& window, double images_per_step) = nullptr;
  // What the published script makes of the log, rounded as it does. Throws Error(bad_data) where the script
  // dies.
  PublishedFigure (*published)(LineReader& lines, const Window& window, double images_per_step) = nullptr;

  double round_average(double value) const;  // to 2 decimals, by the dialect's rounding
};

// All dialects, in the order in which `auto` prefers them.
std::span<const Dialect* const> dialects();
// nullptr if there is none of that name.
const Dialect* find_dialect(std::string_view name);
// The first of dialects() that has a line among the first lines of the file; nullptr if none has. Dialects of
// stamps are left out: their lines are those of another dialect, which says more.
const Dialect* recognise_dialect(const std::filesystem::path& file);

// A log read with every check: one line per iteration, in order, nothing missing, each value usable.
struct LogReading {
  double images_per_second = 0;  // rounded to 2 decimals
  std::optional<Defect> defect;  // set: the figure is none
  std::int64_t bytes = 0;        // with `hash`: two equal files are one file copied
  std::uint64_t hash = 0;
};
LogReading read_log(const Dialect& dialect, const std::filesystem::path& file, const Window& window,
                    double images_per_step);

extern const Dialect kPaddleSpeed, kPaddleTime, kMxnetRn50v1b;

}  // namespace plumb
