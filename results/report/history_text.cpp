// A history as sentences, Markdown tables and JSON.
#include <array>
#include <cmath>

#include "base/text_table.h"
#include "base/units.h"
#include "results/report/history.h"
#include "results/report/report_data.h"

namespace plumb {
namespace {

using HistoryJson = nlohmann::ordered_json;

std::string commit_cell(const HistoryPoint& point) {
  return point.commit.empty() ? "not known" : point.commit;
}

TextRow history_row(const HistoryPoint& point) {
  return {
      point.day(),
      markdown_literal(commit_cell(point)),
      std::to_string(point.runs.size()),
      speed_text(point.median),
      fmt::format("{} to {}", speed_text(point.lowest), speed_text(point.highest)),
      point.change ? fmt::format("{}{} %", *point.change > 0 ? "+" : "", percent_text(*point.change)) : "-",
      trend_word(point.verdict)};
}

// Points that changed, in speed or in how they were made.
std::string history_remarks(const HistoryLine& line, const GateCriteria& criteria) {
  std::vector<Note> notes;
  for (const HistoryPoint& point : line.points) {
    const bool changed =
        point.verdict == TrendVerdict::regression || point.verdict == TrendVerdict::improvement;
    std::string remark = changed ? trend_text(point, criteria) : "";
    if (!point.surroundings.empty())
      append_part(remark, "since the point before: " + differences_text(point.surroundings), "; ");
    if (!remark.empty())
      notes.push_back({"", remark, fmt::format("{}, commit {}", point.day(), commit_cell(point))});
  }
  return notes.empty() ? "" : "\n" + note_items(notes);
}

HistoryJson text_or_null(const std::string& text) {
  return text.empty() ? HistoryJson(nullptr) : HistoryJson(text);
}

HistoryJson point_json(const HistoryPoint& point, const GateCriteria& criteria) {
  HistoryJson json{{"commit", text_or_null(point.commit)},
                   {"began", text_or_null(point.began())},
                   {"median_images_per_second", point.median},
                   {"lowest_images_per_second", point.lowest},
                   {"highest_images_per_second", point.highest},
                   {"verdict", trend_word(point.verdict)},
                   {"finding", trend_text(point, criteria)},
                   {"baseline_runs", point.baseline_runs},
                   {"change", fields::written(point.change)},
                   {"p", fields::written(point.p)},
                   {"smallest_change_shown", fields::written(point.smallest_shown)},
                   {"surroundings", HistoryJson::object()},
                   {"runs", HistoryJson::array()}};
  for (const Difference& difference : point.surroundings)
    json["surroundings"][difference.what] = {difference.first, difference.second};
  for (std::size_t i = 0; i < point.runs.size(); ++i)
    json["runs"].push_back({{"origin", point.runs[i]}, {"images_per_second", point.images_per_second[i]}});
  return json;
}

}  // namespace

std::string trend_word(TrendVerdict verdict) {
  static constexpr std::array kWords{"first", "too few runs", "regression", "improvement", "within noise"};
  return kWords[static_cast<std::size_t>(verdict)];
}

std::string trend_text(const HistoryPoint& point, const GateCriteria& criteria) {
  if (!point.change) return "no run began before these";
  std::string text =
      fmt::format("{} % {} than the {} before", percent_text(std::abs(*point.change)),
                  *point.change > 0 ? "faster" : "slower", counted(point.baseline_runs, "run"));
  if (point.verdict == TrendVerdict::too_few)
    return fmt::format("{}; {} here, {} on either side are needed", text, counted(point.runs.size(), "run"),
                       criteria.least_runs);
  text += *point.p < 0.00005 ? " (p < 0.0001)" : fmt::format(" (p = {:.4f})", *point.p);
  if (point.verdict == TrendVerdict::regression)
    text += fmt::format(", where {} are allowed", given_percent(criteria.max_regression));
  if (point.verdict == TrendVerdict::within_noise && point.smallest_shown)
    text += fmt::format("; these runs would have shown {} %", percent_text(*point.smallest_shown));
  return text;
}

std::string history_markdown(const History& history) {
  std::string text;
  for (const HistoryLine& line : history.lines) {
    std::vector<TextRow> rows{
        {"date", "commit", "runs", "images/s, median", "smallest to largest", "change", "verdict"}};
    for (const HistoryPoint& point : line.points) rows.push_back(history_row(point));
    text += fmt::format("{}**{}**\n\n{}{}", text.empty() ? "" : "\n",
                        markdown_literal(configuration_text(line.configuration)),
                        markdown_table(rows, "llrrrrl"), history_remarks(line, history.criteria));
  }
  for (const std::string& note : history.notes) text += fmt::format("\n{}\n", markdown_literal(note));
  if (!history.left_out.empty()) text += "\nLeft out:\n\n";
  for (const std::string& one : history.left_out) text += fmt::format("- {}\n", markdown_literal(one));
  return text;
}

nlohmann::ordered_json history_json(const History& history) {
  HistoryJson json{{"schema", "plumbline.history/1"},
                   {"title", history.title},
                   {"made_by", history.made_by},
                   {"created", history.created},
                   {"max_regression", history.criteria.max_regression},
                   {"significance", history.criteria.significance},
                   {"least_runs", history.criteria.least_runs},
                   {"baseline_last", history.baseline_last},
                   {"lines", HistoryJson::array()},
                   {"notes", history.notes},
                   {"left_out", history.left_out}};
  for (const HistoryLine& line : history.lines) {
    json["lines"].push_back({{"label", line.label},
                             {"configuration", configuration_text(line.configuration)},
                             {"case", line.configuration.case_name()},
                             {"points", HistoryJson::array()}});
    for (const HistoryPoint& point : line.points)
      json["lines"].back()["points"].push_back(point_json(point, history.criteria));
  }
  return json;
}

}  // namespace plumb
