// The report as one HTML file that needs nothing else: styles, scripts, Chart.js and data are inside.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "results/report/report_data.h"

namespace plumb {

std::string html_page(const ReportData& data);

// JSON that can stand inside <script>: it can neither end the element nor open a comment, and reads back the
// same. What is no UTF-8 becomes U+FFFD.
std::string script_json(const nlohmann::ordered_json& json);

// "{{name}}" becomes values.at(name), once: what is put in is not looked at again. Throws Error(internal) for
// a name without a value.
std::string filled(std::string_view page, const std::map<std::string, std::string, std::less<>>& values);

}  // namespace plumb
