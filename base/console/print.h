// Results to standard output.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/console/progress.h"

namespace plumb {

inline constexpr std::size_t kNarrowestTable = 40, kWidestTable = 80;
// The columns of a table on this terminal: 80, fewer where it is narrower.
std::size_t table_columns(const Terminal& terminal);

// Indented, with an end of line; bytes that aren't UTF-8 (in file names) are replaced.
std::string json_text(const nlohmann::ordered_json& json);

// Text to stdout. Throws Error(io_error) if that is closed or full.
void print_text(const std::string& text);

}  // namespace plumb
