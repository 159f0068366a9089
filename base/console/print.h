// Results to standard output.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace plumb {

// Indented, with an end of line; bytes that aren't UTF-8 (in file names) are replaced.
std::string json_text(const nlohmann::ordered_json& json);

// Text to stdout. Throws Error(io_error) if that is closed or full.
void print_text(const std::string& text);

}  // namespace plumb
