#include "results/analysis/analysis_text.h"

#include <array>
#include <cstdio>
#include <map>
#include <utility>

#include "base/text_table.h"

namespace plumb {
namespace {

std::string two_decimals(const nlohmann::ordered_json& value) {
  if (!value.is_number()) return "n/a";
  std::array<char, 400> text;
  std::snprintf(text.data(), text.size(), "%.2f", value.get<double>());
  return text.data();
}

TextRow row_of(const CaseSummary& summary) {
  return {summary.case_name, std::to_string(summary.runs), two_decimals(summary.average),
          two_decimals(summary.median), two_decimals(summary.speedup)};
}

std::string heading(const CaseSummary& summary, const Analysis& analysis) {
  return summary.model + ", batch " + std::to_string(summary.batch_per_device) + " per device, " +
         summary.precision + ": images/s of " + analysis.window + ", read as " + analysis.dialect;
}

// Calls `begin` before the first case of each heading and `row` for each case.
template <typename Begin, typename Emit>
void for_each_case(const Analysis& analysis, Begin begin, Emit emit) {
  std::string last;
  for (const CaseSummary& summary : analysis.cases) {
    const std::string title = heading(summary, analysis);
    if (title != last) begin(title);
    last = title;
    emit(row_of(summary));
  }
}

}  // namespace

std::string table_text(const Analysis& analysis) {
  std::vector<TextRow> rows{{"case", "runs", "average", "median", "speedup"}};
  for (const CaseSummary& summary : analysis.cases) rows.push_back(row_of(summary));
  const std::vector<std::size_t> widths = column_widths(rows);
  std::string text;
  const auto add_row = [&](const TextRow& row) { text += padded_row(row, widths, "lr"); };
  const auto begin = [&](const std::string& title) {
    text += (text.empty() ? "" : "\n") + title + "\n";
    add_row(rows.front());
  };
  for_each_case(analysis, begin, add_row);
  return text;
}

std::string markdown_text(const Analysis& analysis) {
  std::string text;
  const auto add_row = [&](const TextRow& row) {
    for (const std::string& cell : row) text += "| " + cell + " ";
    text += "|\n";
  };
  const auto begin = [&](const std::string& title) {
    text += (text.empty() ? "" : "\n") + title + "\n\n";
    text += "| case | runs | average | median | speedup |\n| --- | ---: | ---: | ---: | ---: |\n";
  };
  for_each_case(analysis, begin, add_row);
  return text;
}

std::string count_flaws(const std::vector<BadFile>& bad) {
  std::map<Flaw, std::int64_t> counts;
  for (const BadFile& file : bad) ++counts[file.defect.flaw];
  std::string text;
  for (const auto& [flaw, count] : counts)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(flaw_name(flaw));
  return text;
}

std::vector<std::string> message_lines(const Analysis& analysis, std::size_t most_lines) {
  return message_lines(analysis.notes, analysis.bad, most_lines);
}

std::vector<std::string> message_lines(std::vector<std::string> notes, const std::vector<BadFile>& bad,
                                       std::size_t most_lines) {
  std::vector<std::string> lines = std::move(notes);
  for (const BadFile& file : bad)
    lines.push_back("left out: " + file.path + " (" + std::string(flaw_name(file.defect.flaw)) +
                    "): " + file.defect.reason);
  if (most_lines == 0 || lines.size() <= most_lines) return lines;
  const std::size_t shown = most_lines - 1;
  const std::size_t hidden = lines.size() - shown;
  lines.resize(shown);
  std::string summary = std::to_string(hidden) + " more messages";
  if (!bad.empty())
    summary += "; in all " + std::to_string(bad.size()) + " files left out (" + count_flaws(bad) + ")";
  lines.push_back(summary + "; --verbose shows every one");
  return lines;
}

}  // namespace plumb
