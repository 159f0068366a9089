#include "base/csv.h"

#include "base/error.h"
#include "base/text.h"

namespace plumb {

std::vector<std::vector<std::string>> csv_records(std::string_view text, const std::string& origin) {
  std::vector<std::vector<std::string>> records;
  std::int64_t line = 1;
  bool begins_line = true, in_quotes = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == '\n') ++line;
    if (!in_quotes && (letter == '\n' || letter == '\r')) {
      begins_line = true;
      continue;
    }
    if (begins_line) records.push_back({""});
    begins_line = false;
    std::vector<std::string>& record = records.back();
    if (in_quotes && text.substr(i).starts_with("\"\""))
      record.back() += text[++i];
    else if (letter == '"')
      in_quotes = !in_quotes;
    else if (letter == ',' && !in_quotes)
      record.emplace_back();
    else
      record.back() += letter;
  }
  if (in_quotes) throw Error(ExitCode::bad_data, "{}:{}: expected a closing quote", origin, line);
  return records;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  return fmt::format("\"{}\"", replaced(text, '"', "\"\""));
}

std::string csv_record(const std::vector<std::string>& fields) {
  std::string record;
  for (const std::string& field : fields) record += (&field == &fields.front() ? "" : ",") + csv_field(field);
  return record + "\n";
}

}  // namespace plumb
