#include "results/formats/line_shape.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace plumb {

void skip_blanks(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

std::optional<double> take_number(std::string_view& text) {
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return error == std::errc::result_out_of_range ? HUGE_VAL : value;
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

bool LineShape::match_parts(std::size_t first, std::size_t end, std::string_view rest,
                            Captured& captured) const {
  for (std::size_t i = first; i < end; ++i) {
    if (parts_[i].kind == Kind::skip) {
      const std::size_t found = rest.find(parts_[i + 1].text);
      if (found == std::string_view::npos) return false;
      rest.remove_prefix(found);
    } else if (!match_part(parts_[i], rest, captured)) {
      return false;
    }
  }
  return true;
}

Fit LineShape::match_one(std::size_t first, std::size_t end, std::string_view line,
                         Captured& captured) const {
  if (parts_[first].kind == Kind::begin) {
    const Part& next = parts_[first + 1];
    if (next.kind == Kind::text && !line.starts_with(next.text)) return Fit::none;
    if (match_parts(first + 1, end, line, captured)) return Fit::whole;
    return next.kind == Kind::text ? Fit::begins : Fit::none;
  }
  const std::string_view word = parts_[first].text;
  constexpr int kMostTries = 8;  // where a line repeats the word without end
  Fit fit = Fit::none;
  std::size_t at = line.find(word);
  for (int tries = 0; at != std::string_view::npos && tries < kMostTries;
       at = line.find(word, at + 1), ++tries) {
    fit = Fit::begins;
    if (match_parts(first, end, line.substr(at), captured)) return Fit::whole;
  }
  return fit;
}

Fit LineShape::match(std::string_view line, Captured& captured) const {
  Fit best = Fit::none;
  for (std::size_t first = 0, i = 0; i < count_ && best != Fit::whole; ++i) {
    if (parts_[i].kind != Kind::alternative) continue;
    captured = {};
    best = std::max(best, match_one(first, i, line, captured));
    first = i + 1;
  }
  return best;
}

}  // namespace plumb
