// The output of a run at its end.
#pragma once

#include <string>
#include <vector>

#include "results/published/reference.h"
#include "results/record/schema.h"

namespace plumb {

// The table: images/s in total and per device, median and spread of step times inside the window, exposed
// communication and its parts among several ranks, data wait, bytes sent, bandwidth and its share of what the
// probe of links found, time of the exchange and what it takes by those links, bus bandwidth of
// single collectives where it was measured, peak memory, loss first and last, energy where it was measured,
// every check, and of a run that is ok its reference and the published numbers of the nearest configurations,
// each with what differs there. A run that isn't ok has its reason, and no throughput. Words longer than
// `columns` (at least 40) stand alone.
std::string summary_table(const RunRecord& record, const std::vector<ReferenceSpeed>& references,
                          std::size_t columns = 80);

// The table, or with `as_json` the object of result.json, to stdout, likewise.
void print_result(const RunRecord& record, const std::vector<ReferenceSpeed>& references, bool as_json);

}  // namespace plumb
