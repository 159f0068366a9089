#include <gtest/gtest.h>

#include "results/analysis/analyze.h"

namespace plumb {
namespace {

Analysis example() {
  Analysis analysis{.dialect = "paddle_speed", .window = "iterations 21 to 120"};
  analysis.cases = {{"rn50", "1n1g", "fp32", 128, 5, 396.76, 396.8, 1.0},
                    {"rn50", "4n8g", "fp32", 128, 5, 11604.18, 11604.0, nullptr},
                    {"rn50", "1n1g", "fp16", 256, 1, 800.0, 800.0, 1.0}};
  return analysis;
}

TEST(TableText, AlignsColumnsUnderAHeadingPerConfiguration) {
  EXPECT_EQ(table_text(example()),
            "rn50, batch 128 per device, fp32: images/s of iterations 21 to 120, read as paddle_speed\n"
            "case  runs   average    median  speedup\n"
            "1n1g     5    396.76    396.80     1.00\n"
            "4n8g     5  11604.18  11604.00      n/a\n"
            "\n"
            "rn50, batch 256 per device, fp16: images/s of iterations 21 to 120, read as paddle_speed\n"
            "case  runs   average    median  speedup\n"
            "1n1g     1    800.00    800.00     1.00\n");
}

TEST(MarkdownText, IsATablePerConfiguration) {
  const std::string text = markdown_text(example());
  EXPECT_NE(text.find("| case | runs | average | median | speedup |\n| --- | ---: | ---: | ---: | ---: |\n"
                      "| 1n1g | 5 | 396.76 | 396.80 | 1.00 |\n"),
            std::string::npos);
}

TEST(MessageLines, AreCountedBeyondTheLimit) {
  Analysis analysis = example();
  for (int i = 0; i < 3; ++i) analysis.bad.push_back({"f" + std::to_string(i), {Flaw::truncated, "short"}});
  for (int i = 0; i < 3; ++i) analysis.bad.push_back({"g" + std::to_string(i), {Flaw::empty, "it is empty"}});
  EXPECT_EQ(message_lines(analysis, 0).size(), 6u);
  EXPECT_EQ(message_lines(analysis, 6).size(), 6u);
  const std::vector<std::string> lines = message_lines(analysis, 4);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "left out: f0 (truncated): short");
  EXPECT_EQ(lines[3],
            "3 more messages; in all 6 files left out (3 empty, 3 truncated); --verbose shows every one");
}

}  // namespace
}  // namespace plumb
