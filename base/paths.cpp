#include "base/paths.h"

#include <algorithm>

namespace plumb {

namespace fs = std::filesystem;

std::string printable(std::string text, char replacement) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = replacement;
  return text;
}

std::string display_path(const fs::path& path, const fs::path& dir) {
  return printable(path.lexically_relative(dir).string());
}

std::vector<fs::path> visible_entries(const fs::path& dir, std::error_code& error) {
  std::vector<fs::path> entries;
  for (fs::directory_iterator entry(dir, error), end; !error && entry != end; entry.increment(error))
    if (!entry->path().filename().string().starts_with('.')) entries.push_back(entry->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace plumb
