#include "results/formats/line_shape.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

namespace plumb {
namespace {

void skip_blanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
}

std::optional<double> take_plain_number(std::string_view& text) {
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return error == std::errc::result_out_of_range ? HUGE_VAL : value;
}

// 1,530.81 and 1,530,000, without its commas; empty for other text.
std::string without_commas(std::string_view text, std::size_t& length) {
  const auto digits = [&](std::size_t at) {
    std::size_t end = at;
    while (end < text.size() && is_decimal_digit(text[end])) ++end;
    return end - at;
  };
  std::size_t at = digits(0);
  if (at < 1 || at > 3 || text[0] == '0') return "";
  std::string plain(text.substr(0, at));
  int commas = 0;
  for (; at < text.size() && text[at] == ',' && digits(at + 1) == 3; at += 4, ++commas)
    plain += text.substr(at + 1, 3);
  const bool has_point = at < text.size() && text[at] == '.';
  if (commas == 0 || (commas == 1 && !has_point)) return "";
  const std::size_t decimals = has_point ? 1 + digits(at + 1) : 0;
  length = at + decimals;
  return plain.append(text.substr(at, decimals));
}

// The text that a shape begins with, up to a mark.
std::string_view first_text(std::string_view shape) {
  const auto is_mark = [](char c) {  // a search in " ~*^$|{" takes several times as long
    return c == ' ' || c == '~' || c == '*' || c == '^' || c == '$' || c == '|' || c == '{';
  };
  return {shape.begin(), std::ranges::find_if(shape, is_mark)};
}

// Takes the first part off a shape: a text, a field with its braces, or another mark.
std::string_view take_part(std::string_view& shape) {
  const std::string_view text = first_text(shape);
  const std::size_t mark = shape.starts_with('{') ? shape.find('}') + 1 : 1;
  const std::string_view part = shape.substr(0, text.empty() ? mark : text.size());
  shape.remove_prefix(part.size());
  return part;
}

bool match_field(std::string_view field, std::string_view& rest, Captured& captured) {
  static constexpr std::pair<std::string_view, std::optional<std::int64_t> Captured::*> kWholeNumbers[]{
      {"{epoch}", &Captured::epoch},
      {"{iteration}", &Captured::iteration},
      {"{from}", &Captured::from},
      {"{count}", &Captured::count},
      {"{writer}", &Captured::writer}};
  static constexpr std::pair<std::string_view, std::optional<double> Captured::*> kNumbers[]{
      {"{value}", &Captured::value}, {"{mean}", &Captured::mean}, {"{seconds}", &Captured::seconds}};
  skip_blanks(rest);
  for (const auto& [name, number] : kWholeNumbers) {
    if (field != name) continue;
    captured.*number = take_whole_number(rest);
    if (!(captured.*number) || !rest.starts_with('-')) return (captured.*number).has_value();
    rest.remove_prefix(1);
    captured.*number = take_whole_number(rest);
    return (captured.*number).has_value();
  }
  const std::optional<double> found = take_number(rest);
  for (const auto& [name, number] : kNumbers)
    if (field == name) captured.*number = found;
  return found.has_value();
}

// Passes over what stands where a field belongs; false if nothing does. `behind`: the shape behind the field.
bool match_any_word(std::string_view field, std::string_view behind, std::string_view& rest,
                    Captured& captured) {
  skip_blanks(rest);
  std::size_t length = std::min(rest.find_first_of(" \t"), rest.size());
  if (const std::string_view next = first_text(behind); !next.empty())
    length = std::min(rest.substr(0, length).find(next), length);
  std::string_view left = rest.substr(0, length);
  Captured ignored;
  const bool ends_here = !behind.empty() && !behind.starts_with('*');
  const bool fits = match_field(field, left, ignored) && (left.empty() || !ends_here);
  if (!fits && captured.misfit.empty()) captured.misfit = rest.substr(0, length);
  rest.remove_prefix(length);
  return length > 0;
}

enum class Numbers { numbers, any_word };

// Takes what fits the first part of `shape` off the front of `rest`, and the part off `shape`.
bool match_part(std::string_view& shape, std::string_view& rest, Captured& captured, Numbers numbers) {
  const std::string_view part = take_part(shape);
  const std::size_t before = rest.size();
  switch (part.front()) {
    case '{':
      return numbers == Numbers::numbers ? match_field(part, rest, captured)
                                         : match_any_word(part, shape, rest, captured);
    case '*':
      rest.remove_prefix(std::min(rest.find(first_text(shape)), rest.size()));
      return !rest.empty();
    case ' ':
      skip_blanks(rest);
      return rest.size() < before;
    case '~':
      skip_blanks(rest);
      return true;
    case '$':
      skip_blanks(rest);
      return rest.empty();
    default:
      if (!rest.starts_with(part)) return false;
      rest.remove_prefix(part.size());
      return true;
  }
}

bool match_parts(std::string_view shape, std::string_view rest, Captured& captured, Numbers numbers) {
  while (!shape.empty())
    if (!match_part(shape, rest, captured, numbers)) return false;
  return true;
}

Fit match_from(std::string_view shape, std::string_view line, Captured& captured) {
  if (match_parts(shape, line, captured, Numbers::numbers)) return Fit::whole;
  const std::string_view earlier = std::exchange(captured.misfit, {});
  if (match_parts(shape, line, captured, Numbers::any_word) && !captured.misfit.empty()) return Fit::near;
  captured.misfit = earlier;
  return Fit::begins;
}

// `shape`: without alternatives.
Fit match_one(std::string_view shape, std::string_view line, Captured& captured) {
  const bool begins_line = shape.starts_with('^');
  if (begins_line) shape.remove_prefix(1);
  const std::string_view word = first_text(shape);
  if (begins_line) {
    if (!line.starts_with(word)) return Fit::none;
    const Fit fit = match_from(shape, line, captured);
    return fit == Fit::begins && word.empty() ? Fit::none : fit;
  }
  constexpr int kMostTries = 8;  // where a line repeats the word without end
  Fit fit = Fit::none;
  std::size_t at = line.find(word);
  for (int tries = 0; at != std::string_view::npos && tries < kMostTries && fit != Fit::whole;
       at = line.find(word, at + 1), ++tries)
    fit = std::max(fit, match_from(shape, line.substr(at), captured));
  return fit;
}

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

std::optional<double> take_number(std::string_view& text) {
  const std::string_view whole = text;
  std::optional<double> number = take_plain_number(text);
  std::size_t length = 0;
  if (const std::string plain = text.starts_with(',') ? without_commas(whole, length) : ""; !plain.empty()) {
    std::string_view rest = plain;
    number = take_plain_number(rest);
    text = whole.substr(length);
  }
  const bool has_unit = number && !text.empty() && std::string_view("KkM").find(text.front()) != text.npos &&
                        (text.size() == 1 || std::string_view(" \t,;|)").find(text[1]) != text.npos);
  if (has_unit) {
    *number *= text.front() == 'M' ? 1e6 : 1e3;
    text.remove_prefix(1);
  }
  return number;
}

std::optional<std::int64_t> take_whole_number(std::string_view& text) {
  constexpr std::int64_t kHighest = 1'000'000'000'000'000;  // what is counted from it can't overflow
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || text.front() == '-' || value > kHighest) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return value;
}

Fit match_shape(std::string_view shape, std::string_view line, Captured& captured) {
  Fit best = Fit::none;
  captured = {};
  while (!shape.empty() && best != Fit::whole) {
    const std::string_view one = shape.substr(0, shape.find('|'));
    shape.remove_prefix(std::min(one.size() + 1, shape.size()));
    captured = {.misfit = captured.misfit};
    best = std::max(best, match_one(one, line, captured));
  }
  return best;
}

std::optional<Stamp> find_stamp(std::string_view line, StampKind kind) {
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (at > 0 && is_decimal_digit(line[at - 1])) continue;
    if (const std::optional<Stamp> stamp = take_stamp(line.substr(at), kind)) return stamp;
  }
  return std::nullopt;
}

}  // namespace plumb
