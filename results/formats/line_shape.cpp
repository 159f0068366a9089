#include "results/formats/line_shape.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

namespace plumb {

void skip_blanks(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

namespace {

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

}  // namespace

std::optional<double> take_number(std::string_view& text) {
  std::optional<double> number;
  std::size_t length = 0;
  if (const std::string plain = without_commas(text, length); !plain.empty()) {
    std::string_view rest = plain;
    number = take_plain_number(rest);
    text.remove_prefix(length);
  } else {
    number = take_plain_number(text);
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

bool LineShape::match_part(const Part& part, std::string_view& rest, Captured& captured) {
  const std::size_t before = rest.size();
  switch (part.kind) {
    case Kind::text:
      if (!rest.starts_with(part.text)) return false;
      rest.remove_prefix(part.text.size());
      return true;
    case Kind::blanks:
      skip_blanks(rest);
      return rest.size() < before;
    case Kind::maybe_blanks:
      skip_blanks(rest);
      return true;
    case Kind::end:
      skip_blanks(rest);
      return rest.empty();
    case Kind::whole_number: {
      skip_blanks(rest);
      std::optional<std::int64_t> number = take_whole_number(rest);
      if (number && rest.starts_with('-')) {
        rest.remove_prefix(1);
        number = take_whole_number(rest);
      }
      (part.text == "epoch"       ? captured.epoch
       : part.text == "iteration" ? captured.iteration
       : part.text == "from"      ? captured.from
       : part.text == "count"     ? captured.count
                                  : captured.writer) = number;
      return number.has_value();
    }
    case Kind::number: {
      skip_blanks(rest);
      const std::optional<double> number = take_number(rest);
      if (part.text == "value") captured.value = number;
      if (part.text == "mean") captured.mean = number;
      if (part.text == "seconds") captured.seconds = number;
      return number.has_value();
    }
    default:
      return false;
  }
}

// Passes over what stands where part i, a number, belongs; false if nothing does.
bool LineShape::match_any_word(std::size_t i, std::string_view& rest, Captured& captured) const {
  skip_blanks(rest);
  std::size_t length = std::min(rest.find_first_of(" \t"), rest.size());
  if (const Part& next = parts_[i + 1]; next.kind == Kind::text)
    length = std::min(rest.substr(0, length).find(next.text), length);
  std::string_view left = rest.substr(0, length);
  Captured ignored;
  const bool ends_here = parts_[i + 1].kind != Kind::skip && parts_[i + 1].kind != Kind::alternative;
  const bool fits = match_part(parts_[i], left, ignored) && (left.empty() || !ends_here);
  if (!fits && captured.misfit.empty()) captured.misfit = rest.substr(0, length);
  rest.remove_prefix(length);
  return length > 0;
}

bool LineShape::match_parts(std::size_t first, std::size_t end, std::string_view rest, Captured& captured,
                            Numbers numbers) const {
  for (std::size_t i = first; i < end; ++i) {
    const bool is_number = parts_[i].kind == Kind::number || parts_[i].kind == Kind::whole_number;
    if (parts_[i].kind == Kind::skip) {
      const std::size_t found = rest.find(parts_[i + 1].text);
      if (found == std::string_view::npos) return false;
      rest.remove_prefix(found);
    } else if (is_number && numbers == Numbers::any_word) {
      if (!match_any_word(i, rest, captured)) return false;
    } else if (!match_part(parts_[i], rest, captured)) {
      return false;
    }
  }
  return true;
}

Fit LineShape::match_from(std::size_t first, std::size_t end, std::string_view rest,
                          Captured& captured) const {
  if (match_parts(first, end, rest, captured, Numbers::numbers)) return Fit::whole;
  const std::string_view earlier = std::exchange(captured.misfit, {});
  if (match_parts(first, end, rest, captured, Numbers::any_word) && !captured.misfit.empty())
    return Fit::near;
  captured.misfit = earlier;
  return Fit::begins;
}

Fit LineShape::match_one(std::size_t first, std::size_t end, std::string_view line,
                         Captured& captured) const {
  if (parts_[first].kind == Kind::begin) {
    const Part& next = parts_[first + 1];
    if (next.kind == Kind::text && !line.starts_with(next.text)) return Fit::none;
    const Fit fit = match_from(first + 1, end, line, captured);
    return fit == Fit::begins && next.kind != Kind::text ? Fit::none : fit;
  }
  const std::string_view word = parts_[first].text;
  constexpr int kMostTries = 8;  // where a line repeats the word without end
  Fit fit = Fit::none;
  std::size_t at = line.find(word);
  for (int tries = 0; at != std::string_view::npos && tries < kMostTries;
       at = line.find(word, at + 1), ++tries) {
    fit = std::max(fit, match_from(first, end, line.substr(at), captured));
    if (fit == Fit::whole) return fit;
  }
  return fit;
}

Fit LineShape::match(std::string_view line, Captured& captured) const {
  Fit best = Fit::none;
  captured = {};
  for (std::size_t first = 0, i = 0; i < count_ && best != Fit::whole; ++i) {
    if (parts_[i].kind != Kind::alternative) continue;
    captured = {.misfit = captured.misfit};
    best = std::max(best, match_one(first, i, line, captured));
    first = i + 1;
  }
  return best;
}

}  // namespace plumb
