// The build of a program that trains: with its libraries, and what ranks compare.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace plumb {

// A hash over this program's file, 16 hexadecimal digits; empty if it can't be read.
std::string program_hash();

// build_json() with oneDNN, MPI, libjpeg-turbo … as they are found at run time, where they tell; with `load`
// also those that only GPUs need.
nlohmann::ordered_json engine_build_json(bool load = false);

// Lines of name=value, the commit first and the program's hash last, for Job::require_same.
std::string build_lines();

}  // namespace plumb
