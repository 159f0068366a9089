#include "results/report/html_page.h"

#include "base/error.h"
#include "base/text.h"
#include "results/report/history.h"

namespace plumb {

// Made by plumb_embed (results/CMakeLists.txt).
extern const std::string_view kFrameHtml, kPageHtml, kHistoryHtml, kPageCss, kChartJs, kSharedJs, kReportJs,
    kHistoryJs;

namespace {

// A page of the report's look. `body`: behind the header; `script`: behind what both pages share.
std::string framed_page(const std::string& kind, const std::string& title, const std::string& made_by,
                        std::string_view body, std::string_view script, const Json& data) {
  return filled(kFrameHtml, {{"brand", "Plumbline " + kind},
                             {"title", markup_escaped(title)},
                             {"made_by", markup_escaped(made_by)},
                             {"css", std::string(kPageCss)},
                             {"body", std::string(body)},
                             {"chart_js", std::string(kChartJs)},
                             {"scripts", fmt::format("{}{}", kSharedJs, script)},
                             {"data", script_json(data)}});
}

}  // namespace

std::string script_json(const Json& json) {
  return replaced(json.dump(-1, ' ', false, Json::error_handler_t::replace), '<', "\\u003c");
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

std::string html_page(const ReportData& data) {
  return framed_page("report", data.title, data.made_by, kPageHtml, kReportJs, fields::written(data));
}

std::string history_page(const History& history) {
  return framed_page("history", history.title, history.made_by, kHistoryHtml, kHistoryJs,
                     history_json(history));
}

}  // namespace plumb
