#include "results/report/report_markdown.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

namespace plumb {
namespace {

template <typename... Numbers>
std::string printed(const char* format, Numbers... numbers) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), format, numbers...);
  return text.data();
}

// Four digits at least, so that a difference of a thousandth can be seen.
std::string speed(double images_per_second) {
  return printed(images_per_second < 1000 ? "%.2f" : "%.1f", images_per_second);
}

std::string interval_cell(const std::optional<Interval>& interval) {
  if (!interval) return "-";
  return speed(interval->low) + " to " + speed(interval->high) +
         printed(" (%.1f %%)", interval->confidence * 100);
}

std::string row(const ReportPoint& point) {
  const double median = point.median_images_per_second;
  return "| " + markdown_literal(point.case_name) + " | " + std::to_string(point.images_per_second.size()) +
         " | " + speed(median) + " | " + interval_cell(point.interval) + " | " +
         speed(median / std::max(1, point.devices)) + " | " +
         (point.speedup ? printed("%.2f", *point.speedup) : "n/a") + " | " +
         (point.efficiency ? printed("%.1f %%", *point.efficiency * 100) : "n/a") + " |\n";
}

// Of the configuration of one of the curve's points; a flag's subject is such a text.
std::string point_text(const ReportCurve& curve, const ReportPoint& point, const ReportData& data) {
  return configuration_text(point.runs.empty() ? curve.configuration
                                               : data.runs.at(point.runs.front()).configuration);
}

std::string notes(const ReportCurve& curve, const ReportData& data) {
  std::string text;
  for (const ReportPoint& point : curve.points)
    for (const ReportFlag& flag : data.flags)
      if (flag.subject == point_text(curve, point, data))
        text += "- " + markdown_literal(point.case_name + ": " + flag.sentence) + "\n";
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

std::string markdown_literal(const std::string& text) {
  std::string literal;
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (std::string_view("\\|<*`[]&").find(c) != std::string_view::npos) literal += '\\';
    literal += control ? ' ' : c;
  }
  return literal;
}

std::string report_markdown(const ReportData& data) {
  std::string text;
  for (const ReportCurve& curve : data.curves) {
    text += (text.empty() ? "" : "\n") + ("**" + markdown_literal(configuration_text(curve.configuration))) +
            "**\n\n| case | runs | images/s, median | its interval | per device | speedup | efficiency |\n"
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
    for (const ReportPoint& point : curve.points) text += row(point);
    text += notes(curve, data);
  }
  if (!data.left_out.empty()) text += "\nLeft out:\n\n";
  for (const std::string& sentence : data.left_out) text += "- " + markdown_literal(sentence) + "\n";
  return text;
}

}  // namespace plumb
