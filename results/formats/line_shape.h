// The shape of a log line, as text: "[Pass {epoch}, train batch {iteration}]*elapse {value} sec"; and numbers
// and wall clocks in lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace plumb {

// What a line that fits says, as far as its shape asks for it.
struct Captured {
  std::optional<std::int64_t> epoch, iteration, from, count, writer;
  std::optional<double> value, mean, seconds, loss;
  std::string_view misfit;  // of a line that is near: the word where a number is expected
};

// begins: only the first word is there; near: all text is there, but a word where a number is expected.
enum class Fit { none, begins, near, whole };

// In a shape, text stands for itself, and
//   {epoch} {iteration} {from} {count} {writer}: a whole number after blanks or none; of "20-40" the second
//   {value} {mean} {seconds} {any}: a number after blanks or none, nan, inf, 1,530.81 and 1.53K among them;
//   {any} is passed over
//   a blank, ~: blanks or tabs, at least one, any number
//   *: anything up to the text that follows
//   ^ first, $ last: the line begins here, ends here but for blanks
//   |: or another shape
// A shape may begin anywhere in a line, so it begins with text or ^.
Fit match_shape(std::string_view shape, std::string_view line, Captured& captured);

// Takes a number off the front of the text, nan and inf among them; nothing if there is none. One beyond a
// double is infinite. It may have thousands' commas before a point, or two of them, and end with K or M, for
// thousands or millions; what 1,530 alone means is not known.
std::optional<double> take_number(std::string_view& text);
// Takes digits off the front of the text; nothing if there are none, or too many.
std::optional<std::int64_t> take_whole_number(std::string_view& text);
constexpr bool is_decimal_digit(char c) {
  return c >= '0' && c <= '9';
}

enum class StampKind {
  with_comma,  // "2025-01-02 23:59:53,657"
  with_dot,    // "2025-01-02 23:59:53.657123"
  of_glog,     // "I0801 10:00:00.594147": a month, a day and a time; no year
  since_1970,
  milliseconds_since_1970,  // the line's value
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
