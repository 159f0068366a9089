// An analysis as people and as programs read it.
#include <cmath>
#include <functional>
#include <map>

#include "base/text.h"
#include "base/text_table.h"
#include "results/analysis/analyze.h"

namespace plumb {
namespace {

std::string two_decimals(const Json& value) {
  return value.is_number() ? fmt::format("{:.2f}", value.get<double>()) : "n/a";
}

TextRow row_of(const CaseSummary& summary) {
  return {summary.case_name, std::to_string(summary.runs), two_decimals(summary.average),
          two_decimals(summary.median), two_decimals(summary.speedup)};
}

// Python's repr of a float: the shortest decimal number that reads back as the same double.
std::string python_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  const std::string digits = fmt::format("{}", value);
  return digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
}

// `head` stands behind each heading.
std::string tables_text(const Analysis& analysis, const std::string& head,
                        const std::function<std::string(const TextRow&)>& line_of) {
  std::string text, last;
  for (const CaseSummary& summary : analysis.cases) {
    std::string title = summary.model;
    if (summary.batch_per_device > 0) title += fmt::format(", batch {} per device", summary.batch_per_device);
    if (!summary.precision.empty()) title += ", " + summary.precision;
    title += fmt::format(": images/s of {}, read as {}", analysis.window, analysis.log_format);
    if (title != last) text += (text.empty() ? "" : "\n") + title + "\n" + head;
    last = title;
    text += line_of(row_of(summary));
  }
  return text;
}

}  // namespace

std::string table_text(const Analysis& analysis) {
  std::vector<TextRow> rows{{"case", "runs", "average", "median", "speedup"}};
  for (const CaseSummary& summary : analysis.cases) rows.push_back(row_of(summary));
  const auto line_of = [widths = column_widths(rows)](const TextRow& row) {
    return padded_row(row, widths, "lr");
  };
  return tables_text(analysis, line_of(rows.front()), line_of);
}

std::string markdown_text(const Analysis& analysis) {
  return tables_text(analysis,
                     "\n| case | runs | average | median | speedup |\n| --- | ---: | ---: | ---: | ---: |\n",
                     [](const TextRow& row) { return fmt::format("| {} |\n", fmt::join(row, " | ")); });
}

std::string count_flaws(const std::vector<Note>& bad) {
  std::map<std::string, std::int64_t> counts;
  for (const Note& file : bad) ++counts[file.kind];
  std::string text;
  for (const auto& [flaw, count] : counts) append_part(text, fmt::format("{} {}", count, flaw));
  return text;
}

std::vector<std::string> message_lines(std::vector<std::string> lines, const std::vector<Note>& bad,
                                       std::size_t most_lines) {
  for (const Note& file : bad)
    lines.push_back(fmt::format("left out: {} ({}): {}", file.subject, file.kind, file.text));
  if (most_lines == 0 || lines.size() <= most_lines) return lines;
  const std::size_t shown = most_lines - 1;
  const std::size_t hidden = lines.size() - shown;
  lines.resize(shown);
  lines.push_back(fmt::format(
      "{} more messages{}; --verbose shows every one", hidden,
      bad.empty() ? "" : fmt::format("; in all {} files left out ({})", bad.size(), count_flaws(bad))));
  return lines;
}

std::string dictionary_text(const Json& value) {
  if (value.is_number_float()) return python_number(value.get<double>());
  if (!value.is_object()) return value.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string text;
  for (const auto& [key, item] : value.items())
    append_part(text, dictionary_text(key) + ": " + dictionary_text(item));
  return "{" + text + "}";
}

}  // namespace plumb
