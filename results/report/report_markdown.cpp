// A report as Markdown tables.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/text_table.h"
#include "results/report/report_data.h"

namespace plumb {
namespace {

std::string interval_cell(const std::optional<Interval>& interval) {
  if (!interval) return "-";
  return fmt::format("{} to {} ({})", speed_text(interval->low), speed_text(interval->high),
                     confidence_text(*interval));
}

TextRow row(const ReportCurve& curve, const ReportPoint& point) {
  const double median = point.median_images_per_second;
  TextRow cells{markdown_literal(point.case_name),
                std::to_string(point.images_per_second.size()),
                speed_text(median),
                interval_cell(point.interval),
                speed_text(median / std::max(1, point.devices)),
                point.speedup ? fmt::format("{:.2f}", *point.speedup) : "n/a",
                point.efficiency ? fmt::format("{:.1f} %", *point.efficiency * 100) : "n/a"};
  if (curve.predicted.empty()) return cells;
  const ReportPoint* found = find_in(curve.predicted, point.case_name, &ReportPoint::case_name);
  cells.push_back(found ? speed_text(found->median_images_per_second) : "-");
  return cells;
}

// A list, an item per note; empty without notes.
std::string note_items(const std::vector<Note>& notes) {
  std::string text;
  for (const Note& note : notes) text += "- " + markdown_literal(note_text(note)) + "\n";
  return text;
}

// Several as a list, with what they are about.
std::string answers_text(const std::vector<ReportCurve>& curves) {
  std::vector<const ReportCurve*> answered;
  for (const ReportCurve& curve : curves)
    if (curve.answer) answered.push_back(&curve);
  if (answered.empty()) return "";
  if (answered.size() == 1) return markdown_literal(answered.front()->answer->text) + "\n\n";
  std::string text;
  for (const ReportCurve* curve : answered)
    text += fmt::format("- {}: {}\n", markdown_literal(curve->label), markdown_literal(curve->answer->text));
  return text + "\n";
}

std::string verdict_lines(const ReportCurve& curve) {
  return curve.verdicts.empty() ? "" : note_items(curve.verdicts) + "\n";
}

// One device and nothing said beside it: a row is enough.
bool is_alone(const ReportCurve& curve) {
  return curve.points.size() == 1 && curve.points.front().devices <= 1 && curve.predicted.empty() &&
         verdict_lines(curve).empty();
}

// The flags of all these points' runs, each once; of several curves the first of each kind. And how many more
// runs have them.
std::string flags_text(const std::vector<const ReportCurve*>& curves, const ReportData& data) {
  struct Merged {
    Note first;
    std::size_t count = 1;
  };
  std::vector<Merged> merged;
  std::set<std::string> subjects;
  std::size_t runs = 0;
  for (const ReportCurve* curve : curves)
    for (const ReportPoint& point : curve->points) {
      subjects.insert(curve->label + ", " + point.case_name);
      for (const std::size_t run : point.runs) subjects.insert(data.runs.at(run).label);
      runs += point.runs.size();
    }
  for (const Note& flag : data.notes) {
    if (!subjects.contains(flag.subject)) continue;
    const auto same = std::ranges::find_if(merged, [&](const Merged& one) {
      const bool by_kind = curves.size() > 1 && flag.kind != "note";
      return by_kind ? one.first.kind == flag.kind : one.first.text == flag.text;
    });
    if (same == merged.end())
      merged.push_back({flag});
    else
      ++same->count;
  }
  std::vector<Note> notes;
  for (const auto& [first, count] : merged) {
    notes.push_back(first);
    if (const std::string named = curves.front()->label + ", "; curves.size() == 1)
      notes.back().subject.erase(0, named.size());
    if (count == 1) continue;
    notes.back().subject.clear();
    notes.back().text += fmt::format(" (and {} more of {} runs likewise)", count - 1, runs);
  }
  return note_items(notes);
}

std::string table_of_single_devices(const ReportData& data) {
  std::vector<TextRow> rows{{"one device", "runs", "images/s, median", "interval of the median"}};
  std::vector<const ReportCurve*> curves;
  for (const ReportCurve& curve : data.curves) {
    if (!is_alone(curve)) continue;
    curves.push_back(&curve);
    const ReportPoint& point = curve.points.front();
    rows.push_back({markdown_literal(curve.label), std::to_string(point.images_per_second.size()),
                    speed_text(point.median_images_per_second), interval_cell(point.interval)});
  }
  const std::string notes = flags_text(curves, data);
  return markdown_table(rows, "lr") + (notes.empty() ? "" : "\n" + notes);
}

}  // namespace

std::string speed_text(double images_per_second) {
  return fmt::format("{:.{}f}", images_per_second, images_per_second < 1000 ? 2 : 1);
}

std::string report_markdown(const ReportData& data) {
  std::string text = answers_text(data.curves);
  if (data.curves.size() > 1 && !data.common.empty())
    text += fmt::format("All: {}.\n\n", markdown_literal(data.common));
  const bool share_a_table = std::ranges::count_if(data.curves, is_alone) > 1;
  if (share_a_table) text += table_of_single_devices(data);
  bool is_first = !share_a_table;
  for (const ReportCurve& curve : data.curves) {
    if (share_a_table && is_alone(curve)) continue;
    std::vector<TextRow> rows{{"case", "runs", "images/s, median", "interval of the median", "per device",
                               "speedup", "efficiency"}};
    if (!curve.predicted.empty()) rows.front().push_back("predicted");
    for (const ReportPoint& point : curve.points) rows.push_back(row(curve, point));
    text += fmt::format(
        "{}**{}**\n\n{}{}", is_first ? "" : "\n",
        markdown_literal(data.curves.size() > 1 ? curve.label : configuration_text(curve.configuration)),
        verdict_lines(curve), markdown_table(rows, "lr"));
    is_first = false;
    if (const std::string notes = flags_text({&curve}, data); !notes.empty()) text += "\n" + notes;
  }
  if (!data.left_out.empty()) text += "\nLeft out:\n\n";
  for (const std::string& sentence : data.left_out) text += fmt::format("- {}\n", markdown_literal(sentence));
  return text;
}

}  // namespace plumb
