#include "results/report/html_page.h"

#include <gtest/gtest.h>

#include <string>

#include "base/text.h"
#include "tests/bench/expect_error.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(HtmlPage, DataCannotEndTheirScript) {
  const Json json{{"name", "</script><script>alert(1)</script><!-- <SCRIPT"}};
  const std::string text = script_json(json);
  EXPECT_EQ(text.find('<'), std::string::npos) << text;
  EXPECT_EQ(Json::parse(text), json);
}

TEST(HtmlPage, WhatIsNoUtf8IsReplaced) {
  const std::string text = script_json(Json{{"name", "a\377b"}});
  EXPECT_EQ(Json::parse(text).at("name"), "a\357\277\275b");
}

TEST(HtmlPage, TitlesAreText) {
  ReportData data;
  data.title = "A & B <script>\"'";
  const std::string page = html_page(data);
  EXPECT_EQ(count(page, "<title>A &amp; B &lt;script&gt;&quot;&#39;</title>"), 1U);
  EXPECT_EQ(count(page, "<h1>A &amp; B &lt;script&gt;&quot;&#39;</h1>"), 1U);
}

TEST(HtmlPage, WhatIsFilledInIsNotLookedAtAgain) {
  EXPECT_EQ(filled("{{a}}-{{b}}-{{a}}", {{"a", "{{b}}"}, {"b", "2"}}), "{{b}}-2-{{b}}");
  EXPECT_EQ(filled("none", {}), "none");
  expect_error(ExitCode::internal, {"'c'"}, [] { filled("{{c}}", {{"a", ""}}); });
  expect_error(ExitCode::internal, {"defect"}, [] { filled("{{a", {{"a", ""}}); });
}

}  // namespace
}  // namespace plumb
