// A report as a Markdown table and lists.
#include <algorithm>

#include "base/text_table.h"
#include "results/report/report_data.h"

namespace plumb {
namespace {

// Images/s with four digits at least, so that a difference of a thousandth can be seen.
std::string speed_text(double images_per_second) {
  return fmt::format("{:.{}f}", images_per_second, images_per_second < 1000 ? 2 : 1);
}

std::string interval_cell(const std::optional<Interval>& interval) {
  if (!interval) return "-";
  return fmt::format("{} to {} ({})", speed_text(interval->low), speed_text(interval->high),
                     confidence_text(*interval));
}

TextRow row(const ReportCurve& curve, const ReportPoint& point) {
  const double median = point.median_images_per_second;
  const ReportPoint* predicted = find_in(curve.predicted, point.case_name, &ReportPoint::case_name);
  return {markdown_literal(curve.label),
          markdown_literal(point.case_name),
          std::to_string(point.images_per_second.size()),
          speed_text(median),
          interval_cell(point.interval),
          speed_text(median / std::max(1, point.devices)),
          point.speedup ? fmt::format("{:.2f}", *point.speedup) : "n/a",
          point.efficiency ? fmt::format("{:.1f} %", *point.efficiency * 100) : "n/a",
          predicted ? speed_text(predicted->median_images_per_second) : "-"};
}

// An item per sentence, and an empty line; nothing without sentences.
std::string list_text(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += "- " + markdown_literal(sentence) + "\n";
  return sentences.empty() ? "" : text + "\n";
}

}  // namespace

std::string report_markdown(const ReportData& data) {
  std::vector<std::string> answers;
  std::vector<TextRow> rows{{"configuration", "case", "runs", "images/s, median", "interval of the median",
                             "per device", "speedup", "efficiency", "predicted"}};
  for (const ReportCurve& curve : data.curves) {
    const std::string subject = data.curves.size() > 1 ? curve.label + ": " : "";
    if (curve.answer) answers.push_back(subject + curve.answer->text);
    for (const ReportPoint& point : curve.points) rows.push_back(row(curve, point));
  }
  const std::string common = data.common.empty() ? "" : "All: " + markdown_literal(data.common) + ".\n\n";
  return list_text(answers) + common + markdown_table(rows, "llr") + "\n" +
         list_text(mapped(data.notes, note_text)) + (data.left_out.empty() ? "" : "Left out:\n\n") +
         list_text(data.left_out);
}

}  // namespace plumb
