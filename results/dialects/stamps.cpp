#include "results/dialects/stamps.h"

#include <charconv>
#include <chrono>
#include <string>

#include "base/error.h"
#include "results/dialects/tokens.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

struct Fields {
  int year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0, microsecond = 0;
  bool has_mark = true;
};

void read_number(std::string_view text, std::size_t begin, std::size_t count, int& value) {
  std::from_chars(text.data() + begin, text.data() + begin + count, value);
}

// 1 to 2 digits at `position`, then a character that `ends` accepts; moves behind it.
template <typename Ends>
bool take_field(std::string_view text, std::size_t& position, int& value, Ends ends) {
  const std::size_t count = digits_at(text, position);
  if (count < 1 || count > 2 || position + count >= text.size() || !ends(text[position + count]))
    return false;
  read_number(text, position, count, value);
  position += count + 1;
  return true;
}

auto is(char wanted) {
  return [wanted](char c) { return c == wanted; };
}

bool take_date(std::string_view text, std::size_t& position, Fields& fields) {
  if (position + 5 > text.size() || digits_at(text.substr(0, position + 4), position) != 4) return false;
  if (text[position + 4] != '-') return false;
  read_number(text, position, 4, fields.year);
  position += 5;
  return take_field(text, position, fields.month, is('-')) &&
         take_field(text, position, fields.day, is_python_blank);
}

bool stamp_at(std::string_view text, std::size_t position, const StampFormat& format, Fields& fields) {
  if (format.has_date && !take_date(text, position, fields)) return false;
  if (!take_field(text, position, fields.hour, is(':'))) return false;
  if (!take_field(text, position, fields.minute, is(':'))) return false;
  const auto is_mark = [&](char c) { return c == format.mark || format.any_mark; };
  if (!take_field(text, position, fields.second, is_mark)) return false;
  fields.has_mark = text[position - 1] == format.mark;
  const std::size_t digits = std::min(digits_at(text, position), format.most_digits);
  if (digits < format.fewest_digits) return false;
  read_number(text, position, digits, fields.microsecond);
  for (std::size_t i = digits; i < 6; ++i) fields.microsecond *= 10;
  return true;
}

}  // namespace

Stamp find_stamp(std::string_view line, const StampFormat& format) {
  Fields fields;
  std::size_t position = 0;
  while (position < line.size() && !stamp_at(line, position, format, fields)) ++position;
  if (position >= line.size()) return {StampError::no_stamp, 0};
  namespace chrono = std::chrono;
  const chrono::year_month_day date{chrono::year{fields.year},
                                    chrono::month{static_cast<unsigned>(fields.month)},
                                    chrono::day{static_cast<unsigned>(fields.day)}};
  if (!fields.has_mark || fields.year == 0 || !date.ok() || fields.hour > 23 || fields.minute > 59 ||
      fields.second > 59)
    return {StampError::no_date, 0};
  const chrono::microseconds since_epoch = chrono::sys_days{date}.time_since_epoch() +
                                           chrono::hours{fields.hour} + chrono::minutes{fields.minute} +
                                           chrono::seconds{fields.second} +
                                           chrono::microseconds{fields.microsecond};
  return {StampError::none, since_epoch.count()};
}

LineReading reading_of_stamp(std::optional<std::int64_t> index, const Stamp& stamp, std::string_view no_index,
                             std::string_view no_stamp) {
  if (!index || *index < 0) return {.problem = no_index};
  if (stamp.error == StampError::no_stamp) return {.problem = no_stamp};
  if (stamp.error == StampError::no_date) return {.problem = "has a stamp that is no date"};
  return {.index = *index, .value = static_cast<double>(stamp.microseconds)};
}

double speed_between(double begin_microseconds, double end_microseconds, std::int64_t iterations,
                     double images_per_step) {
  const double seconds = (end_microseconds - begin_microseconds) / 1e6;
  return images_per_step / (seconds / static_cast<double>(iterations));
}

}  // namespace plumb
