// Throughput of one device as bars: own results, published ones of the same work, and the best published.
#pragma once

#include <span>

#include "results/published/published.h"
#include "results/report/report_data.h"

namespace plumb {

// Fills data.bars and bars_common from the points of data.curves on one device. Of several settings of the
// same work each framework has its fastest. Without such a point there are no bars.
void add_bars(std::span<const PublishedResult> published, ReportData& data);

}  // namespace plumb
