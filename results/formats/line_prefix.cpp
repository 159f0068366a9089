#include "results/formats/line_prefix.h"

#include <algorithm>
#include <optional>

#include "results/formats/line_shape.h"

namespace plumb {
namespace {

// Takes off the front of `rest` what stands before `mark`; nothing if that isn't there.
std::optional<std::string_view> take_until(std::string_view& rest, std::string_view mark) {
  constexpr std::size_t kLongestPrefix = 200;
  const std::size_t end = rest.substr(0, kLongestPrefix).find(mark);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end + mark.size());
  return taken;
}

bool take(std::string_view& rest, std::string_view text) {
  if (!rest.starts_with(text)) return false;
  rest.remove_prefix(text.size());
  return true;
}

// "[1,3]<stdout>:", "[default3]:", "[rank3]:", "[pod/name/container] ".
std::optional<WrittenLine> without_brackets(std::string_view rest) {
  rest.remove_prefix(1);
  const std::optional<std::string_view> inside = take_until(rest, "]");
  if (!inside || inside->empty()) return std::nullopt;
  if (take(rest, "<stdout>:") || take(rest, "<stderr>:"))
    return WrittenLine{inside->substr(inside->rfind(',') + 1), rest};
  const bool is_rank = inside->starts_with("default") || inside->starts_with("rank");
  if (is_rank && is_decimal_digit(inside->back()) && take(rest, ":"))
    return WrittenLine{inside->substr(inside->find_first_of("0123456789")), rest};
  if (inside->starts_with("pod/") && take(rest, " ")) return WrittenLine{inside->substr(4), rest};
  return std::nullopt;
}

// "3: ", "rank-id:3:".
std::optional<WrittenLine> without_number(std::string_view rest) {
  const bool is_named = take(rest, "rank-id:");
  if (!is_named) rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const std::optional<std::string_view> number = take_until(rest, is_named ? ":" : ": ");
  if (!number || number->empty() || !std::ranges::all_of(*number, is_decimal_digit)) return std::nullopt;
  return WrittenLine{*number, rest};
}

}  // namespace

WrittenLine LinePrefix::strip(std::string_view line) {
  if (line.find('\x1b') != std::string_view::npos) {
    plain_.clear();
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] != '\x1b')
        plain_ += line[i];
      else if (line.substr(i + 1).starts_with('['))  // up to the letter that ends it
        i = std::min(line.find_first_not_of("0123456789;?", i + 2), line.size());
    }
    line = plain_;
  }
  WrittenLine written{"", line};
  for (int prefixes = 0; prefixes < 2 && !written.text.empty(); ++prefixes) {
    const auto stripped =
        written.text.front() == '[' ? without_brackets(written.text) : without_number(written.text);
    if (!stripped) break;
    written = {written.writer.empty() ? stripped->writer : written.writer, stripped->text};
    written.text.remove_prefix(std::min(written.text.find_first_not_of(' '), written.text.size()));
  }
  return written;
}

}  // namespace plumb
