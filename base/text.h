// Text: fmt, which formats it, and small changes to it.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <cctype>
#include <string>
#include <string_view>
#include <utility>

#include "base/ranges.h"

namespace plumb {

// ASCII only: names of models, precisions, frameworks.
inline std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

// At most `columns` letters; the last two are ".." if some are left out.
inline std::string shortened(std::string text, std::size_t columns) {
  if (text.size() <= columns) return text;
  text.resize(columns - 2);
  return text + "..";
}

// "1 step", "2 steps".
template <typename Number>
std::string counted(Number count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// "a,b," at commas is "a", "b" and "".
inline std::vector<std::string> split(std::string_view text, char mark) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == mark)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

// Appends `part` to a list in words, behind a separator unless it is the first.
inline void append_part(std::string& list, std::string_view part, std::string_view separator = ", ") {
  if (!list.empty()) list += separator;
  list += part;
}

// The text with `replacement` for every `letter`.
inline std::string replaced(std::string_view text, char letter, std::string_view replacement) {
  std::string result;
  for (const char c : text) result += c == letter ? replacement : std::string_view(&c, 1);
  return result;
}

// Text for HTML and XML, between tags and in quoted attributes.
inline std::string markup_escaped(std::string text) {
  constexpr std::pair<char, const char*> kEntities[]{
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  for (const auto& [letter, entity] : kEntities) text = replaced(text, letter, entity);
  return text;
}

}  // namespace plumb
