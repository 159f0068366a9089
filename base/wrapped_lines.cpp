#include "base/wrapped_lines.h"

#include <sstream>

namespace plumb {

std::vector<std::string> wrapped_lines(const std::string& text, std::size_t width, LongWords long_words) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    while (long_words == LongWords::cut_paths && word.size() > width) {
      const std::size_t slash = word.rfind('/', width - 1);
      if (slash == std::string::npos) break;
      words.push_back(word.substr(0, slash + 1));
      word.erase(0, slash + 1);
    }
    words.push_back(word);
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
