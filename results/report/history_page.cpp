#include "results/report/history.h"
#include "results/report/html_page.h"

namespace plumb {

// Made by plumb_embed (results/CMakeLists.txt).
extern const std::string_view kHistoryHtml, kHistoryJs;
extern const std::string_view kFormatJs, kTablesJs, kThemeJs, kShapesJs, kFiguresJs, kScalingJs;

std::string history_page(const History& history) {
  return framed_page(
      {.brand = "Plumbline history",
       .title = history.title,
       .made_by = history.made_by,
       .body = kHistoryHtml,
       .scripts = {kFormatJs, kTablesJs, kThemeJs, kShapesJs, kFiguresJs, kScalingJs, kHistoryJs},
       .data = history_json(history)});
}

}  // namespace plumb
