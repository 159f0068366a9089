// One run of a report as the page's scripts read it.
#pragma once

#include "results/report/json_columns.h"
#include "results/report/report_data.h"

namespace plumb {

nlohmann::ordered_json to_json(const Configuration& configuration);
nlohmann::ordered_json to_json(const ReportRun& run, Names& names);

}  // namespace plumb
