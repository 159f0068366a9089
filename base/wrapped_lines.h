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

// `text` in lines of at most 100 columns with their ends, paths cut: the first behind `first_indent`, the
// others behind `indent`, which is at least as long.
std::string hanging_lines(const std::string& text, const std::string& indent,
                          const std::string& first_indent);

}  // namespace plumb
