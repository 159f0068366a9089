// The lane of a program's instructions that compute, by its name in program.json and profile.json.
#pragma once

#include <string_view>

namespace plumb {

inline constexpr std::string_view kComputeLane = "compute";

}  // namespace plumb
