// program.json and profile.json: which format is written, and how both versions of it are read.
#pragma once

#include "results/record/fields.h"
#include "results/record/object_reader.h"

namespace plumb {

inline constexpr std::string_view kComputeLane = "compute";  // the lane of instructions that compute

inline constexpr const char* kProgramFormat = "plumbline.program/2";
inline constexpr const char* kProfileFormat = "plumbline.profile/2";
inline constexpr const char* kProgramFormat1 = "plumbline.program/1";
inline constexpr const char* kProfileFormat1 = "plumbline.profile/1";

// Reads a file of `format`, or of its version 1, in which ops are called "steps".
inline ObjectReader ops_reader(const Json& json, const std::string& origin, const char* format) {
  static constexpr RenamedKey kRenamedSince1[]{{"ops", "steps"}};
  const auto found = value_or<std::string>(json, "format");
  const bool is_version_1 = found == kProgramFormat1 || found == kProfileFormat1;
  return {json, origin, "", format, is_version_1 ? RenamedKeys(kRenamedSince1) : RenamedKeys()};
}

}  // namespace plumb
