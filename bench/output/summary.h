// The output of a run at its end.
#pragma once

#include <string>
#include <vector>

#include "results/published/reference.h"
#include "results/record/schema.h"

namespace plumb {

// The table of a run; one that isn't ok has its reason, and no throughput. Words longer than `columns` (at
// least 40) stand alone.
std::string summary_table(const RunRecord& record, const std::vector<ReferenceSpeed>& references,
                          std::size_t columns = 80);

// The table, or with `as_json` the object of result.json, to stdout.
void print_result(const RunRecord& record, const std::vector<ReferenceSpeed>& references, bool as_json);

}  // namespace plumb
