// The text of a file that a program of ours wrote and anybody may have changed.
#pragma once

#include <filesystem>
#include <string>

namespace plumb {

// `kind`: the file's usual name, "result.json". Throws Error(bad_data) that names the file, what is wrong and
// the remedy: it isn't there, is no regular file, can't be read or is larger than 256 MiB.
std::string read_record_text(const std::filesystem::path& path, const std::string& kind);

}  // namespace plumb
