#include "comm/agreement.h"

#include <algorithm>
#include <sstream>

#include "base/paths.h"
#include "base/text.h"

namespace plumb {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string key_of(const std::string& line) {
  return line.substr(0, line.find('='));
}

const std::string* find_key(const std::vector<std::string>& lines, const std::string& key) {
  const auto line = std::ranges::find(lines, key, key_of);
  return line == lines.end() ? nullptr : &*line;
}

}  // namespace

std::string first_difference(const std::string& odd, const std::string& others) {
  const std::vector<std::string> odd_lines = lines_of(odd);
  const std::vector<std::string> other_lines = lines_of(others);
  for (const std::string& line : odd_lines) {
    const std::string* other = find_key(other_lines, key_of(line));
    if (!other) return fmt::format("{} where the others have no {}", line, key_of(line));
    if (*other != line) return fmt::format("{} where the others have {}", line, *other);
  }
  for (const std::string& line : other_lines)
    if (!find_key(odd_lines, key_of(line)))
      return fmt::format("no {} where the others have {}", key_of(line), line);
  return "the same entries as the others, in another order or number";
}

std::optional<std::string> disagreement(const std::string& what, const std::vector<std::string>& texts,
                                        const std::vector<std::string>& hosts) {
  const auto ranks_with = [&](const std::string& text) { return std::ranges::count(texts, text); };
  const std::string& common = *std::ranges::max_element(texts, {}, ranks_with);
  const auto odd = std::ranges::find_if(texts, [&](const std::string& text) { return text != common; });
  if (odd == texts.end()) return std::nullopt;
  const auto rank = static_cast<std::size_t>(odd - texts.begin());
  const std::string difference = first_difference(*odd, common);
  const std::string place = fmt::format("rank {} on {}", rank, printable(hosts[rank]));
  // The options have been compared before: only oneDNN's choices for the CPU can still differ.
  if (what == "Program")
    return fmt::format(
        "{} has another Program, {}; use hosts with the same CPU, or set DNNL_MAX_CPU_ISA alike on all",
        place, difference);
  return fmt::format("{} has {}; start every rank with the same {}", place, difference, what);
}

}  // namespace plumb
