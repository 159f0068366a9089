#include "base/text_table.h"

#include <algorithm>

#include "base/paths.h"

namespace plumb {

std::vector<std::size_t> column_widths(std::span<const TextRow> rows) {
  std::vector<std::size_t> widths;
  for (const TextRow& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  return widths;
}

std::string padded_row(const TextRow& row, std::span<const std::size_t> widths, std::string_view alignment) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string padding(widths[i] - std::min(widths[i], row[i].size()), ' ');
    const bool right = alignment[std::min(i, alignment.size() - 1)] == 'r';
    line += (i > 0 ? "  " : "") + (right ? padding + row[i] : row[i] + padding);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string padded_table(std::span<const TextRow> rows, std::string_view alignment, std::string_view indent) {
  const std::vector<std::size_t> widths = column_widths(rows);
  std::string text;
  for (const TextRow& row : rows) text += std::string(indent) + padded_row(row, widths, alignment);
  return text;
}

std::string markdown_literal(const std::string& text) {
  std::string literal;
  for (const char c : printable(text, ' ')) {
    if (std::string_view("\\|<*`[]&").find(c) != std::string_view::npos) literal += '\\';
    literal += c;
  }
  return literal;
}

}  // namespace plumb
