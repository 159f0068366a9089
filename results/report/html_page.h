// The report as one HTML file that needs nothing else: styles, scripts, Chart.js and data are inside.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "results/report/report_data.h"

namespace plumb {

std::string html_page(const ReportData& data);

// JSON that can stand inside <script>: it can neither end the element nor open a comment, and reads back the
// same. Bytes that aren't UTF-8 become U+FFFD.
std::string script_json(const Json& json);

// "{{name}}" becomes values.at(name), once: values are not filled themselves. Throws Error(internal) for
// a name without a value.
std::string filled(std::string_view page, const std::map<std::string, std::string, std::less<>>& values);

}  // namespace plumb
