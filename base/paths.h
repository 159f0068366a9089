// Paths and the contents of folders, for messages and listings.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace plumb {

// Control characters replaced: for messages.
std::string printable(std::string text, char replacement = '?');
// `path` below `dir` as text for messages.
std::string display_path(const std::filesystem::path& path, const std::filesystem::path& dir);

// The entries of a folder by name, hidden ones left out; nothing if it can't be listed.
std::vector<std::filesystem::path> visible_entries(const std::filesystem::path& dir, std::error_code& error);

}  // namespace plumb
