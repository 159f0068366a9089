#include <gtest/gtest.h>

#include <string>

#include "results/report/report_data.h"

namespace plumb {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// What the page's script reads.
std::string data_in(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const std::size_t from = page.find(begin) + begin.size();
  return page.substr(from, page.find("</script>", from) - from);
}

TEST(HtmlPage, DataCannotEndTheirScript) {
  const std::string name = "</script><script>alert(1)</script><!-- <SCRIPT {title}";
  const std::string data = data_in(html_page(ReportData{.common = name}));
  EXPECT_EQ(data.find('<'), std::string::npos) << data;
  EXPECT_EQ(Json::parse(data).at("common"), name);
}

TEST(HtmlPage, WhatIsNoUtf8IsReplaced) {
  const std::string data = data_in(html_page(ReportData{.common = "a\377b"}));
  EXPECT_EQ(Json::parse(data).at("common"), "a\357\277\275b");
}

TEST(HtmlPage, TitlesAreText) {
  const std::string page = html_page(ReportData{.title = "A & B <script>\"'"});
  EXPECT_EQ(count(page, "<title>A &amp; B &lt;script&gt;&quot;&#39;</title>"), 1U);
  EXPECT_EQ(count(page, "<h1>A &amp; B &lt;script&gt;&quot;&#39;</h1>"), 1U);
}

}  // namespace
}  // namespace plumb
