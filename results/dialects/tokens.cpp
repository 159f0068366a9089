#include "results/dialects/tokens.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <string>

namespace plumb {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Leaves the number without blanks around it and underscores, which are allowed between digits only; `kept`
// holds the text if it isn't the same any more.
bool strip_number(std::string_view& text, std::string& kept) {
  while (!text.empty() && is_python_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_python_blank(text.back())) text.remove_suffix(1);
  if (text.find('_') == std::string_view::npos) return true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      kept += text[i];
    } else if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1])) {
      return false;
    }
  }
  text = kept;
  return true;
}

std::optional<std::string_view> elapse_text(std::string_view line) {
  constexpr std::string_view kBefore = "elapse ", kAfter = " sec";
  const std::size_t last_after = line.rfind(kAfter);
  if (last_after == std::string_view::npos) return std::nullopt;
  // The blank of "elapse " can't be that of " sec" as well.
  if (last_after < kBefore.size()) return std::nullopt;
  const std::size_t before = line.rfind(kBefore, last_after - kBefore.size());
  if (before == std::string_view::npos) return std::nullopt;
  const std::size_t begin = before + kBefore.size();
  return line.substr(begin, line.find(kAfter, begin) - begin);
}

}  // namespace

bool is_python_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
}

std::size_t digits_at(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end - begin;
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
  const std::optional<std::string_view> text = elapse_text(line);
  return text ? python_float(*text) : std::nullopt;
}

std::optional<double> number_with_any_point(std::string_view line, std::string_view before,
                                            std::string_view after) {
  for (std::size_t at = line.find(before); at != std::string_view::npos; at = line.find(before, at + 1)) {
    const std::size_t begin = at + before.size();
    const std::size_t whole = digits_at(line, begin);
    if (whole == 0 || begin + whole >= line.size()) continue;
    const std::size_t fraction = digits_at(line, begin + whole + 1);
    const std::size_t long_end = begin + whole + 1 + fraction, short_end = begin + whole;
    if (fraction > 0 && line.substr(long_end).starts_with(after))
      return python_float(line.substr(begin, long_end - begin));
    if (whole >= 3 && line.substr(short_end).starts_with(after))
      return python_float(line.substr(begin, whole));
  }
  return std::nullopt;
}

std::optional<double> samples_per_second(std::string_view line) {
  return number_with_any_point(line, "Speed: ", " samples/sec");
}

std::optional<double> decimal_between(std::string_view line, std::string_view before,
                                      std::string_view after) {
  for (std::size_t at = line.find(before); at != std::string_view::npos; at = line.find(before, at + 1)) {
    const std::size_t begin = at + before.size(), whole = digits_at(line, begin);
    if (whole == 0 || begin + whole >= line.size() || line[begin + whole] != '.') continue;
    const std::size_t fraction = digits_at(line, begin + whole + 1), end = begin + whole + 1 + fraction;
    if (fraction > 0 && line.substr(end).starts_with(after))
      return python_float(line.substr(begin, end - begin));
  }
  return std::nullopt;
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

std::optional<std::int64_t> number_between(std::string_view line, std::string_view before,
                                           std::string_view after) {
  const std::size_t at = line.find(before);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(at + before.size());
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  if (!rest.substr(static_cast<std::size_t>(stop - rest.data())).starts_with(after)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> batch_in_brackets(std::string_view text) {
  if (!text.starts_with("[")) return std::nullopt;
  if (const auto batch = number_between(text, "[", "]")) return batch;
  return number_between(text, "[", "-") ? number_between(text, "-", "]") : std::nullopt;
}

}  // namespace plumb
