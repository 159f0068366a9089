// What is odd about a run, but no failure, is told in its table, in result.json and by analyze.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/faults/started_program.h"

namespace plumb {
namespace {

// The table's words, a blank between two of them however it wraps.
std::string words_of(const std::string& table) {
  std::string words;
  for (const char c : table)
    if (c != ' ' && c != '\n')
      words += c;
    else if (!words.empty() && words.back() != ' ')
      words += ' ';
  return words;
}

bool any_has(const nlohmann::ordered_json& texts, const std::string& words) {
  return std::ranges::any_of(texts, [&](const nlohmann::ordered_json& text) {
    return text.get<std::string>().find(words) != std::string::npos;
  });
}

TEST(SlowRank, IsNamedInTableResultAndReport) {
  const Place place;
  const Ended ended = place.run(Place::mpirun(2, place.damaged(kSmall + "--iters 8")), "PLUMB_DAMAGE=slow");
  ASSERT_EQ(ended.exit_code, 0) << ended.launcher_messages;
  const std::string table = words_of(ended.output);
  for (const char* words : {"note rank 1 on ", "s a step where the median is ", "% of a step for it",
                            "for the slowest rank", "bus bandwidth"})
    EXPECT_NE(table.find(words), std::string::npos) << words << " is missing in\n" << ended.output;
  const nlohmann::ordered_json result = place.result();
  const auto& ranks = result.at("ranks");
  EXPECT_GT(ranks[0].at("exposed_communication_seconds"), ranks[1].at("exposed_communication_seconds"));
  EXPECT_GT(ranks[1].at("compute_seconds").get<double>(), 0.2);
  EXPECT_GT(ranks[1].at("compute_seconds"), ranks[0].at("compute_seconds"));
  EXPECT_EQ(ranks[1].at("rank"), 1);
  EXPECT_TRUE(any_has(result.at("warnings"), "rank 1 on ")) << result.at("warnings");
  // An allreduce over two ranks sends every gradient once, and each is 4 bytes.
  EXPECT_GE(result.at("sent_bytes_per_step"), 4 * result.at("parameters").get<double>());
  EXPECT_GT(result.at("bus_bytes_per_second"), 0);
  ASSERT_EQ(place.run(place.plumbline("report runs -o report.html")).exit_code, 0);
  const std::string page = read_text(place.file("report.html"));
  EXPECT_NE(page.find("\"slow_rank\""), std::string::npos);
  EXPECT_NE(page.find("\"text\":\"rank 1 on "), std::string::npos);
}

TEST(Stall, IsNamedInTableResultAndAnalysis) {
  const Place place;
  const Ended ended = place.run(Place::mpirun(2, place.damaged(kSmall + "--iters 12")), "PLUMB_DAMAGE=stall");
  ASSERT_EQ(ended.exit_code, 0) << ended.launcher_messages;
  // On busy cores other iterations may stall, too; the longest is named.
  const std::string table = words_of(ended.output);
  EXPECT_NE(table.find("the run stalled"), std::string::npos) << ended.output;
  EXPECT_NE(table.find(": iteration 5 took "), std::string::npos) << ended.output;
  const nlohmann::ordered_json result = place.result();
  EXPECT_TRUE(any_has(result.at("warnings"), ": iteration 5 took ")) << result.at("warnings");
  double window = 0;
  for (std::size_t i = 1; i < 12; ++i) window += result.at("step_seconds")[i].get<double>();
  EXPECT_LE(result.at("exposed_communication_seconds").get<double>(), window / 11);
  const Ended analysis = place.run(place.plumbline("analyze logs --iters 12 --warmup 1"));
  ASSERT_EQ(analysis.exit_code, 0);
  EXPECT_TRUE(std::ranges::any_of(analysis.lines, [](const std::string& line) {
    return line.find("y1_b2_fp32_1.log stalled") != std::string::npos &&
           line.find(": iteration 5 took ") != std::string::npos;
  })) << analysis.output;
}

TEST(Divergence, IsNamedInTableResultAndAnalysis) {
  const Place place;
  const Ended ended = place.run(place.resnet50(kSmallImages + "--iters 4 --lr 30"));
  ASSERT_EQ(ended.exit_code, 0) << ended.launcher_messages;
  EXPECT_NE(words_of(ended.output).find("note the loss grew from "), std::string::npos) << ended.output;
  EXPECT_TRUE(any_has(place.result().at("warnings"), "training diverges")) << place.result().at("warnings");
  const Ended analysis = place.run(place.plumbline("analyze logs --iters 4 --warmup 1"));
  ASSERT_EQ(analysis.exit_code, 0);
  EXPECT_TRUE(std::ranges::any_of(analysis.lines, [](const std::string& line) {
    return line.find("resnet50_b2_fp32_1.log: the loss grew from ") != std::string::npos;
  })) << testing::PrintToString(analysis.lines);
}

}  // namespace
}  // namespace plumb
