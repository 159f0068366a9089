// Every step of a profile beside its roofline, as Markdown tables.
#pragma once

#include <string>

#include "results/report/report_data.h"

namespace plumb {

// A heading line and a table per configuration that has a profile: step, engine (as far as profile.json names
// one), measured and roofline time, their ratio, the time lost, what bounds the step. Steps of the compute
// lane only, most time lost first. Throws Error(bad_data) if no run has a profile.
std::string report_steps(const ReportData& data);

}  // namespace plumb
