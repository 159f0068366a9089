// Wall clocks in log lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace plumb {

enum class StampKind {
  with_comma,  // "2025-01-02 23:59:53,657"
  with_dot,    // "2025-01-02 23:59:53.657123"
  of_glog,     // "I0801 10:00:00.594147": a month, a day and a time; no year
  since_1970,  // seconds: the line's value
};

constexpr double kDay = 86400e6;  // microseconds

// In microseconds, without a time zone: since 1970; of_glog: in order within a year, and right up to whole
// days.
struct Stamp {
  bool is_date = true;  // false: the text has the form of a stamp, but such a date or time doesn't exist
  double microseconds = 0;
};

// The first of the line; nothing if there is none.
std::optional<Stamp> find_stamp(std::string_view line, StampKind kind);

}  // namespace plumb
