// Build and commit of this program: for --version, env.json, and the check that all ranks run one build.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace plumb {

// "0.2.0"
const char* version();

// The linker's hash over this program (ELF note NT_GNU_BUILD_ID), hexadecimal; empty if it has none.
std::string build_id();

// {"version", "commit", "build_id", "build_type", "compiler", "libraries"}; `libraries`: versions by name, of
// what the program has besides CLI11 and nlohmann-json.
nlohmann::ordered_json build_json(nlohmann::ordered_json libraries);
nlohmann::ordered_json build_json();

// --version: program, version, commit, compiler, libraries. `build`: of build_json().
std::string version_text(const std::string& program, const nlohmann::ordered_json& build);

}  // namespace plumb
