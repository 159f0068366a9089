#include "base/csv.h"

#include "base/error.h"
#include "base/text.h"

namespace plumb {

std::vector<std::vector<std::string>> csv_records(std::string_view text, const std::string& origin) {
  enum class Place { line_begin, field_begin, field, quotes, after_quotes };
  Place place = Place::line_begin;
  std::int64_t line = 1;
  std::vector<std::vector<std::string>> records;
  const auto refuse = [&](const char* what) {
    throw Error(ExitCode::bad_data, "{}:{}: {}", origin, line, what);
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    const bool ends_line = letter == '\n' || text.substr(i).starts_with("\r\n");
    if (place == Place::quotes) {
      if (letter == '\n') ++line;
      if (letter != '"')
        records.back().back() += letter;
      else if (text.substr(i).starts_with("\"\""))
        records.back().back() += text[++i];
      else
        place = Place::after_quotes;
    } else if (ends_line) {
      if (letter == '\r') ++i;
      ++line;
      place = Place::line_begin;
    } else {
      if (place == Place::line_begin) records.push_back({""});
      if (letter == ',') {
        records.back().emplace_back();
        place = Place::field_begin;
      } else if (letter == '"' && place != Place::field && place != Place::after_quotes) {
        place = Place::quotes;
      } else if (place == Place::after_quotes) {
        refuse("expected a comma or the line's end after a closing quote");
      } else {
        records.back().back() += letter;
        place = Place::field;
      }
    }
  }
  if (place == Place::quotes) refuse("expected a closing quote");
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
