// Pictures by gnuplot, a program that is looked for in PATH when one is wanted.
#pragma once

#include <string>
#include <string_view>

namespace plumb {

enum class PictureFormat { svg, png };

// The bytes of a picture of 900 x 560 pixels. `commands`: gnuplot's language, without terminal and output. No
// shell is involved, and no start-up file of the user's is read. Throws Error(unavailable) if gnuplot isn't
// there or lacks the format, Error(internal) with its own words if it refuses the commands.
std::string draw_with_gnuplot(const std::string& commands, PictureFormat format);

// As a literal in single quotes, in which gnuplot expands nothing: neither `commands` nor @macros nor
// escapes. Control characters become blanks, bytes that aren't UTF-8 become U+FFFD. Terminals must be told
// `noenhanced`, which draw_with_gnuplot does.
std::string gnuplot_literal(std::string_view text);

}  // namespace plumb
