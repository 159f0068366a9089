// A report or a history as one HTML file that needs nothing else: styles, scripts, Chart.js and data are
// inside.
#include "base/text.h"
#include "results/report/history.h"
#include "results/report/report_data.h"

namespace plumb {

// Made by plumb_embed (results/CMakeLists.txt).
extern const std::string_view kFrameHtml, kPageHtml, kHistoryHtml, kPageCss, kChartJs, kSharedJs, kReportJs,
    kHistoryJs;

namespace {

// JSON that can stand inside <script>: it can neither end the element nor open a comment, and reads back the
// same. Bytes that aren't UTF-8 become U+FFFD.
std::string script_json(const Json& json) {
  return replaced(json.dump(-1, ' ', false, Json::error_handler_t::replace), '<', "\\u003c");
}

// A page of the report's look. `body`: behind the header; `script`: behind what both pages share.
std::string framed_page(std::string_view kind, const std::string& title, const std::string& made_by,
                        std::string_view body, std::string_view script, const Json& data) {
  return fmt::format(fmt::runtime(kFrameHtml), fmt::arg("kind", kind),
                     fmt::arg("title", markup_escaped(title)), fmt::arg("made_by", markup_escaped(made_by)),
                     fmt::arg("css", kPageCss), fmt::arg("body", body), fmt::arg("chart_js", kChartJs),
                     fmt::arg("shared_js", kSharedJs), fmt::arg("script", script),
                     fmt::arg("data", script_json(data)));
}

}  // namespace

std::string html_page(const ReportData& data) {
  return framed_page("report", data.title, data.made_by, kPageHtml, kReportJs, fields::written(data));
}

std::string html_page(const History& history) {
  return framed_page("history", history.title, history.made_by, kHistoryHtml, kHistoryJs,
                     history_json(history));
}

}  // namespace plumb
