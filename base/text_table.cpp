#include "base/text_table.h"

#include <algorithm>
#include <sstream>

#include "base/paths.h"
#include "base/text.h"

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

std::string markdown_table(std::span<const TextRow> rows, std::string_view alignment) {
  std::string text;
  for (const TextRow& row : rows) {
    text += fmt::format("| {} |\n", fmt::join(row, " | "));
    if (&row != rows.data()) continue;
    for (std::size_t i = 0; i < row.size(); ++i)
      text += alignment[std::min(i, alignment.size() - 1)] == 'l' ? "| --- " : "| ---: ";
    text += "|\n";
  }
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

std::vector<std::string> wrapped_lines(const std::string& text, std::size_t width) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    while (word.size() > width) {
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

std::string last_line(const std::string& text) {
  std::string last;
  for (const std::string& line : split(text, '\n'))
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  std::erase(last, '\r');
  return last;
}

std::string hanging_lines(const std::string& text, const std::string& indent,
                          const std::string& first_indent) {
  std::string lines;
  for (const std::string& line : wrapped_lines(text, 100 - indent.size()))
    lines += (lines.empty() ? first_indent : indent) + line + "\n";
  return lines;
}

}  // namespace plumb
