#include "bench/output/text.h"

#include <sstream>

namespace plumb {

std::vector<std::string> wrapped_lines(const std::string& text, std::size_t width) {
  std::istringstream words(text);
  std::vector<std::string> lines(1);
  for (std::string word; words >> word;) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

}  // namespace plumb
