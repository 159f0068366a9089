#include "base/paths.h"

#include <algorithm>

namespace plumb {
namespace {

// The bytes of the UTF-8 character at the text's beginning; 0 if there is none or it is a C1 control.
// (Terminals take 0x9b and U+009B for the beginning of a sequence as ESC [ is.)
std::size_t letter_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const std::size_t bytes = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (bytes > text.size()) return 0;
  for (std::size_t i = 1; i < bytes; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Longer than they need to be, or C1.
  const unsigned least = first == 0xc2 || first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  return byte(1) < least ? 0 : bytes;
}

std::string without_controls(std::string_view text, char replacement, std::string_view kept) {
  std::string clean;
  while (!text.empty()) {
    const std::size_t bytes = letter_bytes(text), taken = std::max<std::size_t>(bytes, 1);
    const bool is_control = static_cast<unsigned char>(text[0]) < ' ' || text[0] == '\x7f';
    if (bytes == 0 || (is_control && kept.find(text[0]) == std::string_view::npos))
      clean += replacement;
    else
      clean += text.substr(0, taken);
    text.remove_prefix(taken);
  }
  return clean;
}

}  // namespace

std::string printable(std::string_view text, char replacement) {
  return without_controls(text, replacement, "");
}

std::string printable_lines(std::string_view text, char replacement) {
  return without_controls(text, replacement, "\n\t");
}

std::string display_path(const fs::path& path, const fs::path& dir) {
  return printable(path.lexically_relative(dir).string());
}

fs::path absolute_path(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  return error ? path : absolute;
}

std::vector<fs::path> visible_entries(const fs::path& dir, std::error_code& error) {
  std::vector<fs::path> entries;
  for (fs::directory_iterator entry(dir, error), end; !error && entry != end; entry.increment(error))
    if (!entry->path().filename().string().starts_with('.')) entries.push_back(entry->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace plumb
