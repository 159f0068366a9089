// What a report's own curves should reach over the links of their hosts, and how that was met.
#pragma once

#include <string>
#include <vector>

#include "results/compare/curve_samples.h"
#include "results/report/report_data.h"

namespace plumb {

// Fills in answer, predicted and verdicts of data.curves, which are those of `groups`. `links_file`:
// links.json; empty: the links that the runs probed before they began. What can't be used is named in
// data.left_out.
void add_predictions(const std::vector<CurveSamples>& groups, const std::string& links_file,
                     ReportData& data);

}  // namespace plumb
