// Text for terminals and Markdown: tables of padded columns, wrapped lines.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plumb {

using TextRow = std::vector<std::string>;

// The widest cell of each column; rows may be of different lengths.
std::vector<std::size_t> column_widths(std::span<const TextRow> rows);

// The cells two blanks apart, a newline behind. `alignment`: 'l' or 'r' per column, columns behind its end
// are as its last; nothing is padded at the end of a line.
std::string padded_row(const TextRow& row, std::span<const std::size_t> widths, std::string_view alignment);

// All rows, each behind `indent`.
std::string padded_table(std::span<const TextRow> rows, std::string_view alignment,
                         std::string_view indent = "");

// A table in Markdown, headed by the first row; `alignment` as in padded_row.
std::string markdown_table(std::span<const TextRow> rows, std::string_view alignment);

// Text in which Markdown finds nothing to act on, on one line.
std::string markdown_literal(const std::string& text);

// Breaks `text` between words into as few lines of at most `width` columns as possible. A path longer than a
// line is broken after the last '/' that fits; any other long word gets a line of its own. Without words it
// is one empty line.
std::vector<std::string> wrapped_lines(const std::string& text, std::size_t width);

// The last line that isn't blank, without '\r'; empty: there is none.
std::string last_line(const std::string& text);

// Breaks `text` into lines of at most 100 columns, each with its '\n'. The first begins with `first_indent`,
// the others with `indent`, which is at least as long.
std::string hanging_lines(const std::string& text, const std::string& indent,
                          const std::string& first_indent);

}  // namespace plumb
