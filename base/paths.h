// Paths and the contents of folders, for messages and listings.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace plumb {

namespace fs = std::filesystem;

// For messages, on one line of a terminal: control characters (C0, DEL, C1) and bytes that are no UTF-8
// replaced. printable_lines() keeps ends of lines and tabs.
std::string printable(std::string_view text, char replacement = '?');
std::string printable_lines(std::string_view text, char replacement = '?');
// `path` below `dir` as text for messages.
std::string display_path(const fs::path& path, const fs::path& dir);

// `path` from the root; `path` itself where the working folder was removed and has no name.
fs::path absolute_path(const fs::path& path);

// The entries of a folder by name, hidden ones left out; nothing if it can't be listed.
std::vector<fs::path> visible_entries(const fs::path& dir, std::error_code& error);

}  // namespace plumb
