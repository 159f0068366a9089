// A report, and the steps of its profiles beside their rooflines, as Markdown tables.
#pragma once

#include <string>

#include "results/report/report_data.h"

namespace plumb {

// A heading line, the verdict on its scaling and a table per own curve: case, runs, median, its interval, per
// device, speedup, efficiency; below it the flags of its runs, at the end the files that were left out.
// Neither date nor version of this program, so equal runs give equal text.
std::string report_markdown(const ReportData& data);

// Images/s with four digits at least, so that a difference of a thousandth can be seen.
std::string speed_text(double images_per_second);

// A heading line and a table per configuration that has a profile: step, engine (as far as profile.json names
// one), measured and roofline time, their ratio, the time lost, what bounds the step. Steps of the compute
// lane only, most time lost first. Throws Error(bad_data) if no run has a profile.
std::string report_steps(const ReportData& data);

}  // namespace plumb
