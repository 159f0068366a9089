// Wall stamps in log lines, found as the regular expressions of the published scripts find them.
#pragma once

#include <cstdint>
#include <string_view>

#include "results/dialects/dialect.h"

namespace plumb {

// no_stamp: there is none; no_date: not a date or time that exists.
enum class StampError { none, no_stamp, no_date };
struct Stamp {
  StampError error = StampError::none;
  std::int64_t microseconds = 0;  // since 1970, or since midnight without a date; no time zone
};

// `\d{4}-\d{1,2}-\d{1,2}\s\d{1,2}:\d{1,2}:\d{1,2},\d{FEWEST,MOST}`.
struct StampFormat {
  bool has_date = true;
  char mark = ',';        // before the fraction of the second
  bool any_mark = false;  // the regular expression has a dot there; another character than `mark` is no date
  std::size_t fewest_digits = 3, most_digits = 3;
};
inline constexpr StampFormat kMilliseconds{};  // "2025-01-02 23:59:53,657"
inline constexpr StampFormat kMicroseconds{
    .mark = '.', .any_mark = true, .fewest_digits = 1, .most_digits = 6};  // "2025-01-02 23:59:53.657123"
inline constexpr StampFormat kTimeOfDay{
    .has_date = false, .mark = '.', .any_mark = true, .fewest_digits = 1, .most_digits = 6};

// The first of the line.
Stamp find_stamp(std::string_view line, const StampFormat& format = kMilliseconds);

// The reading of a line that gives a stamp. `no_index`, `no_stamp`: the problem where one is missing.
LineReading reading_of_stamp(std::optional<std::int64_t> index, const Stamp& stamp, std::string_view no_index,
                             std::string_view no_stamp);

// Images/s over so many iterations between two stamps in microseconds, in the scripts' order of operations.
double speed_between(double begin_microseconds, double end_microseconds, std::int64_t iterations,
                     double images_per_step);

}  // namespace plumb
