// The build of a program that trains: with its libraries, and what ranks compare.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace plumb {

// build_json() with oneDNN, MPI, libjpeg-turbo … as they are found at run time, where they tell; with `load`
// also those that only GPUs need.
nlohmann::ordered_json engine_build_json(bool load = false);

// Lines of name=value, the commit first, for Job::require_same.
std::string build_lines();

}  // namespace plumb
