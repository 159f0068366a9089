// Comma-separated values as RFC 4180 has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumb {

// Records end with \n or \r\n, fields may be quoted; empty lines are none. Throws Error(bad_data) that names
// `origin` and the line for a quote that isn't closed.
std::vector<std::vector<std::string>> csv_records(std::string_view text, const std::string& origin);

// The field, quoted where it must be.
std::string csv_field(std::string_view text);
// Fields with commas between them and \n behind.
std::string csv_record(const std::vector<std::string>& fields);

}  // namespace plumb
