// Text for terminals.
#pragma once

#include <string>
#include <vector>

namespace plumb {

// A word longer than a line stands alone, or a path is cut behind the last '/' that fits.
enum class LongWords { stand_alone, cut_paths };

// The words of `text` in as few lines of at most `width` columns as it takes. No words: one empty line.
std::vector<std::string> wrapped_lines(const std::string& text, std::size_t width,
                                       LongWords long_words = LongWords::stand_alone);

}  // namespace plumb
