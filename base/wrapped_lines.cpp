#include "base/wrapped_lines.h"

#include <sstream>

namespace plumb {

namespace {

std::vector<std::string> cut_path(std::string path, std::size_t width) {
  std::vector<std::string> pieces;
  while (path.size() > width) {
    const std::size_t slash = path.rfind('/', width - 1);
    if (slash == std::string::npos) break;
    pieces.push_back(path.substr(0, slash + 1));
    path = path.substr(slash + 1);
  }
  pieces.push_back(path);
  return pieces;
}

}  // namespace

std::vector<std::string> wrapped_lines(const std::string& text, std::size_t width, LongWords long_words) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    const auto pieces =
        long_words == LongWords::cut_paths ? cut_path(word, width) : std::vector<std::string>{word};
    words.insert(words.end(), pieces.begin(), pieces.end());
  }
  std::vector<std::string> lines(1);
  for (const std::string& word : words) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

std::string hanging_lines(const std::string& text, const std::string& indent,
                          const std::string& first_indent) {
  std::string lines;
  for (const std::string& line : wrapped_lines(text, 100 - indent.size(), LongWords::cut_paths))
    lines += (lines.empty() ? first_indent : indent) + line + "\n";
  return lines;
}

}  // namespace plumb
