// The text of a file that a program of ours wrote and anybody may have changed.
#pragma once

#include <filesystem>
#include <string>

namespace plumb {

// `kind`: the file's usual name, "result.json". Throws Error(bad_data) as read_whole_file does.
std::string read_record_text(const std::filesystem::path& path, const std::string& kind);

}  // namespace plumb
