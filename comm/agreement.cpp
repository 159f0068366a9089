#include "comm/agreement.h"

#include <algorithm>
#include <sstream>

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
  const auto line = std::find_if(lines.begin(), lines.end(),
                                 [&](const std::string& other) { return key_of(other) == key; });
  return line == lines.end() ? nullptr : &*line;
}

std::size_t most_common(const std::vector<std::string>& texts) {
  std::size_t best = 0;
  std::ptrdiff_t best_count = 0;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const std::ptrdiff_t count = std::count(texts.begin(), texts.end(), texts[rank]);
    if (count > best_count) {
      best = rank;
      best_count = count;
    }
  }
  return best;
}

}  // namespace

std::string first_difference(const std::string& here, const std::string& there) {
  const std::vector<std::string> here_lines = lines_of(here);
  const std::vector<std::string> there_lines = lines_of(there);
  for (const std::string& line : here_lines) {
    const std::string* other = find_key(there_lines, key_of(line));
    if (!other) return line + " here, no " + key_of(line) + " there";
    if (*other != line) return line + " here, " + *other + " there";
  }
  for (const std::string& line : there_lines) {
    if (!find_key(here_lines, key_of(line))) return "no " + key_of(line) + " here, " + line + " there";
  }
  return "the same entries, in another order or number";
}

std::optional<OddRank> find_odd_rank(const std::vector<std::string>& texts) {
  if (texts.empty()) return std::nullopt;
  const std::string& common = texts[most_common(texts)];
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank] != common) return OddRank{rank, first_difference(texts[rank], common)};
  }
  return std::nullopt;
}

}  // namespace plumb
