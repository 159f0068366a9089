// A report as Markdown tables, for READMEs.
#pragma once

#include <string>

#include "results/report/report_data.h"

namespace plumb {

// A heading line, the verdict on its scaling and a table per own curve: case, runs, median, its interval, per
// device, speedup, efficiency; below it the flags of its runs, at the end the files that were left out.
// Neither date nor version of this program, so equal runs give equal text.
std::string report_markdown(const ReportData& data);

}  // namespace plumb
