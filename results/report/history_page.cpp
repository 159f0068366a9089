#include "base/text.h"
#include "results/report/history.h"
#include "results/report/html_page.h"

namespace plumb {

// Made by plumb_embed (results/CMakeLists.txt).
extern const std::string_view kHistoryHtml, kHistoryJs, kPageCss, kChartJs;
extern const std::string_view kFormatJs, kTablesJs, kThemeJs, kShapesJs, kFiguresJs, kScalingJs;

std::string history_page(const History& history) {
  std::string scripts;
  for (const std::string_view script :
       {kFormatJs, kTablesJs, kThemeJs, kShapesJs, kFiguresJs, kScalingJs, kHistoryJs})
    scripts += std::string(script) + "\n";
  return filled(kHistoryHtml, {{"title", markup_escaped(history.title)},
                               {"made_by", markup_escaped(history.made_by)},
                               {"css", std::string(kPageCss)},
                               {"chart_js", std::string(kChartJs)},
                               {"scripts", scripts},
                               {"data", script_json(history_json(history))}});
}

}  // namespace plumb
