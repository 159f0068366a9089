// The output of a run at its end.
#pragma once

#include <string>

#include "results/record/schema.h"

namespace plumb {

// The table: images/s in total and per device, median and spread of step times inside the window, exposed
// communication, data wait, bus bandwidth where it was measured, peak memory, loss first and last, energy
// where it was measured, every check, and of a run that is ok the published numbers of the nearest
// configurations, each with what differs there.
std::string summary_table(const RunRecord& record);

// Indented, with an end of line; bytes that aren't UTF-8 (in file names) are replaced.
std::string json_text(const nlohmann::ordered_json& json);

// Text to stdout. Throws Error(io_error) if that is closed or full.
void print_text(const std::string& text);

// The table, or with `as_json` the object of result.json, to stdout, likewise.
void print_result(const RunRecord& record, bool as_json);

}  // namespace plumb
