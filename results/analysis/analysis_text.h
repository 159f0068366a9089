// An analysis as people and as programs read it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "results/analysis/analyze.h"

namespace plumb {

// A heading per model, batch and precision; columns case, runs, average, median, speedup.
std::string table_text(const Analysis& analysis);
std::string markdown_text(const Analysis& analysis);

// Files that were left out, with the reason, then the notes. More than `most_lines` lines end in one that
// counts the rest by flaw and names the option that shows all; 0: no limit.
std::vector<std::string> message_lines(const Analysis& analysis, std::size_t most_lines);
std::vector<std::string> message_lines(std::vector<std::string> notes, const std::vector<BadFile>& bad,
                                       std::size_t most_lines);

// "2 truncated, 1 wrongly named"
std::string count_flaws(const std::vector<BadFile>& bad);

// Python's json.dumps(dictionary, sort_keys=True), so "1.0", "NaN" and a blank after each comma and colon.
std::string dictionary_text(const nlohmann::ordered_json& dictionary);

}  // namespace plumb
