// result.json as a file.
#pragma once

#include <cstdint>
#include <filesystem>

#include "results/record/schema.h"

namespace plumb {

inline constexpr const char* kResultFile = "result.json";  // in a run's folder

struct ResultFile {
  RunRecord record;
  std::uint64_t hash = 0;  // fnv1a of the bytes: equal files are one run copied
};

// Whatever the run's status. Throws Error(bad_data) that names the file, what is wrong and the remedy: it
// can't be read, holds no JSON object, is of a newer schema, or has a key that is missing or of another type.
ResultFile read_result_file(const std::filesystem::path& file);

}  // namespace plumb
