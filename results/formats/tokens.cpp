#include "results/formats/tokens.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

namespace plumb {
namespace {

// Leaves the number without blanks around it and underscores, which are allowed between digits only; `kept`
// holds the text if it isn't the same any more.
bool strip_number(std::string_view& text, std::string& kept) {
  while (!text.empty() && is_python_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_python_blank(text.back())) text.remove_suffix(1);
  if (text.find('_') == std::string_view::npos) return true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      kept += text[i];
    } else if (i == 0 || digits_at(text, i - 1) == 0 || digits_at(text, i + 1) == 0) {
      return false;
    }
  }
  text = kept;
  return true;
}

}  // namespace

bool is_python_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
}

std::size_t digits_at(std::string_view text, std::size_t begin) {
  const std::string_view rest = text.substr(std::min(begin, text.size()));
  return std::min(rest.find_first_not_of("0123456789"), rest.size());
}

std::optional<double> python_float(std::string_view text) {
  std::string kept;
  if (!strip_number(text, kept)) return std::nullopt;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text.front() == '-' || text.find('(') != std::string_view::npos) return std::nullopt;
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::invalid_argument || stop != end) return std::nullopt;
  if (error == std::errc::result_out_of_range) value = std::strtod(std::string(text).c_str(), nullptr);
  return negative ? -value : value;
}

std::optional<double> elapse_seconds(std::string_view line) {
  constexpr std::string_view kBefore = "elapse ", kAfter = " sec";
  if (line.find(kBefore) == std::string_view::npos) return std::nullopt;  // rfind is slow
  const std::size_t last_after = line.rfind(kAfter);
  if (last_after == std::string_view::npos) return std::nullopt;
  // The blank of "elapse " can't be that of " sec" as well.
  if (last_after < kBefore.size()) return std::nullopt;
  const std::size_t before = line.rfind(kBefore, last_after - kBefore.size());
  if (before == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(before + kBefore.size());
  return python_float(rest.substr(0, rest.find(kAfter)));
}

std::optional<double> decimal_between(std::string_view line, std::string_view before, std::string_view after,
                                      Point point) {
  for (std::size_t at = line.find(before); at != std::string_view::npos; at = line.find(before, at + 1)) {
    const std::string_view rest = line.substr(at + before.size());
    const std::size_t whole = digits_at(rest, 0);
    if (whole == 0 || whole == rest.size() || (point == Point::dot && rest[whole] != '.')) continue;
    const std::size_t fraction = digits_at(rest, whole + 1), end = whole + 1 + fraction;
    if (fraction > 0 && rest.substr(end).starts_with(after)) return python_float(rest.substr(0, end));
    if (point == Point::any && whole >= 3 && rest.substr(whole).starts_with(after))
      return python_float(rest.substr(0, whole));
  }
  return std::nullopt;
}

std::optional<double> samples_per_second(std::string_view line) {
  return decimal_between(line, "Speed: ", " samples/sec", Point::any);
}

std::optional<std::int64_t> python_int(std::string_view text) {
  std::string kept;
  if (!strip_number(text, kept)) return std::nullopt;
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<std::string_view> text_behind(std::string_view line, std::string_view mark) {
  const std::size_t at = line.find(mark);
  return at == std::string_view::npos ? std::nullopt : std::optional(line.substr(at + mark.size()));
}

std::optional<std::int64_t> number_between(std::string_view line, std::string_view before,
                                           std::string_view after) {
  const auto rest = text_behind(line, before);
  if (!rest) return std::nullopt;
  std::int64_t value = 0;
  const char* const end = rest->data() + rest->size();
  const auto [stop, error] = std::from_chars(rest->data(), end, value);
  if (error != std::errc() || value < 0 || !std::string_view(stop, end).starts_with(after))
    return std::nullopt;
  return value;
}

std::optional<std::int64_t> batch_in_brackets(std::string_view text) {
  if (!text.starts_with("[")) return std::nullopt;
  if (const auto batch = number_between(text, "[", "]")) return batch;
  return number_between(text, "[", "-") ? number_between(text, "-", "]") : std::nullopt;
}

}  // namespace plumb
