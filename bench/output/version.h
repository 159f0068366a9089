// Build, commit and libraries: for --version, env.json, and the check that all ranks run one build.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace plumb {

// The linker's hash over this program (ELF note NT_GNU_BUILD_ID), hexadecimal; empty if it has none.
std::string build_id();

// A hash over this program's file, 16 hexadecimal digits: other bytes of one build, too, are another program.
// Empty if the file can't be read.
std::string program_hash();

// {"version", "commit", "build_id", "build_type", "compiler", "libraries": {"oneDNN", "MPI", "libjpeg-turbo",
// …}}. Libraries are those found at run time, where they tell; with `load` also those that only GPUs need.
nlohmann::ordered_json build_json(bool load = false);

// --version, and the text that ranks compare: program, version, commit, compiler, libraries.
std::string version_text(const std::string& program);
// Lines of name=value, the commit first and the program's hash last, for Job::require_same.
std::string build_lines();

}  // namespace plumb
