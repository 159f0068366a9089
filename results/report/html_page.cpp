#include "results/report/html_page.h"

#include "base/error.h"
#include "base/text.h"
#include "results/report/history.h"
#include "results/report/palette.h"

namespace plumb {

// Made by plumb_embed (results/CMakeLists.txt).
extern const std::string_view kFrameHtml, kPageHtml, kHistoryHtml, kPageCss, kChartJs, kHistoryJs;
extern const std::string_view kBarsJs, kFormatJs, kTablesJs, kThemeJs, kShapesJs, kFiguresJs, kScalingJs,
    kWaitsJs, kRunJs, kCollectivesJs, kGpusJs, kProfileJs, kMemoryJs, kFlagsJs, kMainJs;

std::string script_json(const nlohmann::ordered_json& json) {
  return replaced(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace), '<',
                  "\\u003c");
}

std::string filled(std::string_view page, const std::map<std::string, std::string, std::less<>>& values) {
  std::string text;
  while (true) {
    const std::size_t open = page.find("{{");
    text += page.substr(0, open);
    if (open == std::string_view::npos) return text;
    const std::size_t close = page.find("}}", open);
    const std::string_view name = page.substr(open + 2, close - open - 2);
    const auto value = values.find(name);
    if (close == std::string_view::npos || value == values.end())
      throw Error(ExitCode::internal,
                  "the report's page has a place '{}' that nothing fills; this is a defect, please report it",
                  name);
    text += value->second;
    page.remove_prefix(close + 2);
  }
}

std::string framed_page(const PageParts& parts) {
  std::string scripts;
  for (const std::string_view script : parts.scripts) scripts += std::string(script) + "\n";
  return filled(kFrameHtml, {{"brand", parts.brand},
                             {"title", markup_escaped(parts.title)},
                             {"made_by", markup_escaped(parts.made_by)},
                             {"css", std::string(kPageCss)},
                             {"body", std::string(parts.body)},
                             {"chart_js", std::string(kChartJs)},
                             {"scripts", scripts},
                             {"data", script_json(parts.data)}});
}

std::string html_page(const ReportData& data) {
  nlohmann::ordered_json json = fields::written(data);
  json["palette"] = palette_json();
  return framed_page(
      {.brand = "Plumbline report",
       .title = data.title,
       .made_by = data.made_by,
       .body = kPageHtml,
       .scripts = {kFormatJs, kTablesJs, kThemeJs, kShapesJs, kFiguresJs, kScalingJs, kWaitsJs, kBarsJs,
                   kRunJs, kCollectivesJs, kGpusJs, kProfileJs, kMemoryJs, kFlagsJs, kMainJs},
       .data = std::move(json)});
}

std::string history_page(const History& history) {
  return framed_page(
      {.brand = "Plumbline history",
       .title = history.title,
       .made_by = history.made_by,
       .body = kHistoryHtml,
       .scripts = {kFormatJs, kTablesJs, kThemeJs, kShapesJs, kFiguresJs, kScalingJs, kFlagsJs, kHistoryJs},
       .data = history_json(history)});
}

}  // namespace plumb
