#include "results/formats/stamps.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "results/formats/line_shape.h"

namespace plumb {
namespace {

// Takes `fewest` to `most` digits off the front of the text, then `mark` if that isn't 0.
bool take_field(std::string_view& text, std::size_t fewest, std::size_t most, char mark, int& value) {
  std::size_t count = 0;
  while (count < std::min(most, text.size()) && is_decimal_digit(text[count])) ++count;
  if (count < fewest || (mark != 0 && (count >= text.size() || text[count] != mark))) return false;
  std::from_chars(text.data(), text.data() + count, value);
  text.remove_prefix(count + (mark != 0 ? 1 : 0));
  return true;
}

// Takes a stamp off the front of the text.
std::optional<Stamp> take_stamp(std::string_view text, StampKind kind) {
  int year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0, fraction = 0;
  if (kind == StampKind::of_glog) {
    if (!text.starts_with('I')) return std::nullopt;
    text.remove_prefix(1);
    if (!take_field(text, 4, 4, ' ', month)) return std::nullopt;
    day = month % 100;
    month /= 100;
  } else if (!take_field(text, 4, 4, '-', year) || !take_field(text, 1, 2, '-', month) ||
             !take_field(text, 1, 2, ' ', day)) {
    return std::nullopt;
  }
  const char mark = kind == StampKind::with_comma ? ',' : '.';
  if (!take_field(text, 1, 2, ':', hour) || !take_field(text, 1, 2, ':', minute) ||
      !take_field(text, 1, 2, mark, second))
    return std::nullopt;
  const std::size_t before = text.size();
  if (!take_field(text, 1, 6, 0, fraction)) return std::nullopt;
  for (std::size_t digits = before - text.size(); digits < 6; ++digits) fraction *= 10;
  namespace chrono = std::chrono;
  // Without a year, any that has a 29th of February.
  const int of_year = kind == StampKind::of_glog ? 2000 : year;
  const chrono::year_month_day date{chrono::year{of_year}, chrono::month{static_cast<unsigned>(month)},
                                    chrono::day{static_cast<unsigned>(day)}};
  if (of_year == 0 || !date.ok() || hour > 23 || minute > 59 || second > 59) return Stamp{.is_date = false};
  const chrono::microseconds since_1970 = chrono::sys_days{date}.time_since_epoch() + chrono::hours{hour} +
                                          chrono::minutes{minute} + chrono::seconds{second} +
                                          chrono::microseconds{fraction};
  return Stamp{.microseconds = static_cast<double>(since_1970.count())};
}

}  // namespace

std::optional<Stamp> find_stamp(std::string_view line, StampKind kind) {
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (at > 0 && is_decimal_digit(line[at - 1])) continue;
    if (const std::optional<Stamp> stamp = take_stamp(line.substr(at), kind)) return stamp;
  }
  return std::nullopt;
}

}  // namespace plumb
