// Text for terminals.
#pragma once

#include <string>
#include <vector>

namespace plumb {

// The words of `text` in as few lines of at most `width` columns as it takes; a longer word stands alone.
// No words: one empty line.
std::vector<std::string> wrapped_lines(const std::string& text, std::size_t width);

}  // namespace plumb
