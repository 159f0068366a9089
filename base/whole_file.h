// Files that anybody may have written, read whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace plumb {

struct WholeFile {
  std::string remedy;     // "name a result.json"
  std::string name = {};  // for messages; empty: "file '<path>'"
  // By default more than a run's files have, a result of ten million iterations too.
  std::uint64_t most_bytes = std::uint64_t{1} << 28;
};

// The bytes of a regular file. Throws Error(bad_data), "<name> <what is wrong>; <remedy>", if it can't be
// read, is not a regular file (a pipe isn't waited for) or has more than most_bytes.
std::string read_whole_file(const std::filesystem::path& path, const WholeFile& file);

}  // namespace plumb
