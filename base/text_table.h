// Tables of padded columns.
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

// Text in which Markdown finds nothing to act on, on one line.
std::string markdown_literal(const std::string& text);

}  // namespace plumb
