// The lanes of a program's instructions, by their names in program.json and profile.json.
#pragma once

#include <string_view>

namespace plumb {

// Whether instructions of the lane count as computing, against the roofline.
constexpr bool computes(std::string_view lane) {
  return lane == "compute" || lane == "weights";
}

}  // namespace plumb
