#include "results/report/history.h"

#include <gtest/gtest.h>

#include "results/report/html_page.h"
#include "tests/results/run_folder.h"

namespace plumb {
namespace {

// Five runs around a speed, none like another.
const std::vector<double> kSpread{0.999, 1.001, 0.9985, 1.0015, 1.0};

class HistoryTest : public testing::Test {
 protected:
  // A nightly job's runs: one per figure, at 02:00, 02:01, …; `commit` empty: without env.json.
  void add_night(const std::string& day, const std::string& commit, const std::vector<double>& figures,
                 const std::string& library = "2.6.3", int devices = 2) {
    for (std::size_t i = 0; i < figures.size(); ++i) {
      const std::string name =
          fmt::format("runs/resnet50_1n{}g_b8_fp32_{}-02{:02}{:02}_1", devices, day, i, devices);
      RunRecord record = example_run(figures[i]);
      record.world_size = record.devices_per_node = devices;
      record.rank_window_seconds.resize(static_cast<std::size_t>(devices), 1.0);
      write_run_folder(scratch_, name, record);
      if (!commit.empty())
        scratch_.write(
            name + "/env.json",
            nlohmann::json{
                {"host", "node1"},
                {"build", {{"version", "0.1.0"}, {"commit", commit}, {"libraries", {{"oneDNN", library}}}}}}
                .dump());
    }
  }
  // Five runs around a speed.
  void add_five(const std::string& day, const std::string& commit, double speed,
                const std::string& library = "2.6.3", int devices = 2) {
    std::vector<double> figures;
    for (const double factor : kSpread) figures.push_back(speed * factor + 1e-10 * std::stod(day));
    add_night(day, commit, figures, library, devices);
  }
  History history(const HistoryOptions& options = {}) const {
    return collect_history(load_samples((scratch_ / "runs").string()), options);
  }

  ScratchFolder scratch_;
};

std::vector<std::string> words_of(const HistoryLine& line) {
  std::vector<std::string> words;
  for (const HistoryPoint& point : line.points) words.push_back(trend_word(point.verdict));
  return words;
}

TEST_F(HistoryTest, APointIsTheMedianAndTheSpreadOfACommitsRuns) {
  add_night("20260103", "bbb", {104, 101, 102});
  add_night("20260101", "ccc", {90, 92});
  add_night("20260105", "bbb", {110, 111});  // measured again
  const History made = history();
  ASSERT_EQ(made.lines.size(), 1u);
  ASSERT_EQ(made.lines[0].points.size(), 2u);
  const HistoryPoint &first = made.lines[0].points[0], &second = made.lines[0].points[1];
  EXPECT_EQ(first.commit + " " + first.day(), "ccc 2026-01-01");
  EXPECT_EQ(second.commit + " " + second.began(), "bbb 2026-01-03T02:00:02");
  EXPECT_EQ(second.images_per_second, (std::vector<double>{104, 101, 102, 110, 111}));
  EXPECT_EQ(second.median, 104);
  EXPECT_EQ(second.lowest, 101);
  EXPECT_EQ(second.highest, 111);
  EXPECT_TRUE(made.notes.empty());
}

TEST_F(HistoryTest, EveryPointIsJudgedAgainstTheRunsBeforeIt) {
  add_five("20260101", "a1", 100);
  add_five("20260102", "b2", 100.2);
  add_five("20260103", "c3", 95);
  add_five("20260104", "d4", 105);
  const History made = history();
  EXPECT_EQ(words_of(made.lines.at(0)),
            (std::vector<std::string>{"first", "within noise", "regression", "improvement"}));
  const auto& points = made.lines[0].points;
  EXPECT_FALSE(points[0].change);
  EXPECT_EQ(points[2].baseline_runs, 10u);
  EXPECT_NEAR(*points[2].change, -0.051, 0.001);
  EXPECT_NE(trend_text(points[2], made.criteria).find("5.1 % slower than the 10 runs before (p = 0.0003)"),
            std::string::npos)
      << trend_text(points[2], made.criteria);
  EXPECT_GT(*points[3].change, 0.04);
  EXPECT_LT(*points[3].p, 0.05);
}

TEST_F(HistoryTest, TheVerdictIsTheGatesOverItsBaseline) {
  add_five("20260101", "a1", 100);
  add_five("20260102", "b2", 90);
  add_five("20260103", "c3", 90.1);
  EXPECT_EQ(words_of(history({.baseline_last = 5}).lines.at(0)).back(), "within noise");
  EXPECT_EQ(history({.baseline_last = 5}).lines[0].points[2].baseline_runs, 5u);
  EXPECT_EQ(words_of(history({.criteria = {.max_regression = 0.2}}).lines.at(0)),
            (std::vector<std::string>{"first", "within noise", "within noise"}));
}

TEST_F(HistoryTest, TooFewRunsAreShownAndNotJudged) {
  add_five("20260101", "a1", 100);
  add_night("20260102", "b2", {50, 51});
  const History made = history();
  const HistoryPoint& point = made.lines.at(0).points.at(1);
  EXPECT_EQ(point.verdict, TrendVerdict::too_few);
  EXPECT_FALSE(point.p);
  EXPECT_NE(trend_text(point, made.criteria).find("2 runs here, 3 on either side are needed"),
            std::string::npos);
}

TEST_F(HistoryTest, ConfigurationsAreLinesOfTheirOwn) {
  add_five("20260101", "a1", 100);
  add_five("20260101", "a1", 190, "2.6.3", 4);
  add_five("20260102", "b2", 100.1);
  add_five("20260102", "b2", 150, "2.6.3", 4);
  const History made = history();
  ASSERT_EQ(made.lines.size(), 2u);
  EXPECT_NE(made.lines[0].label, made.lines[1].label);
  EXPECT_TRUE(made.lines[1].label.ends_with(", 1n4g")) << made.lines[1].label;
  EXPECT_EQ(words_of(made.lines[0]).back(), "within noise");
  EXPECT_EQ(words_of(made.lines[1]).back(), "regression");
}

TEST_F(HistoryTest, RunsOfUnknownCommitsArePointsByDayAndAreNamedInOneSentence) {
  add_night("20260101", "", {100, 101});
  add_night("20260102", "", {99});
  scratch_.write("runs/resnet50_1n2g_b8_fp32_20260102-020002_1/env.json",
                 R"({"host": "node1", "compiler": "GNU"})");
  add_night("20260103", "a1", {98});
  const History made = history();
  ASSERT_EQ(made.lines.at(0).points.size(), 3u);
  EXPECT_EQ(made.lines[0].points[0].day(), "2026-01-01");
  EXPECT_EQ(made.lines[0].points[0].runs.size(), 2u);
  EXPECT_EQ(made.lines[0].points[1].commit, "");
  EXPECT_EQ(made.lines[0].points[2].commit, "a1");
  ASSERT_EQ(made.notes.size(), 1u);
  for (const char* part :
       {"the commit of 3 of 4 runs isn't known (2 without env.json, 1 with an env.json that", "first ",
        "20260101-020002_1): such runs are grouped by day"})
    EXPECT_NE(made.notes[0].find(part), std::string::npos) << made.notes[0];
}

TEST_F(HistoryTest, SaysWhatElseChangedAtAPoint) {
  add_five("20260101", "a1", 100);
  add_five("20260102", "b2", 99, "3.0.0");
  const HistoryPoint point = history().lines.at(0).points.at(1);
  EXPECT_EQ(differences_text(point.surroundings), "oneDNN 2.6.3 against 3.0.0");
}

TEST_F(HistoryTest, MarkdownAndJsonHaveEveryPoint) {
  add_night("20260101", "a1", {100, 100.5, 101});
  add_five("20260102", "", 90);
  const History made = history();
  const std::string text = history_markdown(made);
  EXPECT_NE(text.find("\n| 2026-01-01 | a1 | 3 | 100.50 | 100.00 to 101.00 | - | first |\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("| -10.4 % | regression |\n\n- 2026-01-02, commit not known: 10.4 % slower than"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("such runs are grouped by day"), std::string::npos);

  const auto json = history_json(made);
  EXPECT_EQ(json.at("schema"), "plumbline.history/1");
  const auto& points = json.at("lines").at(0).at("points");
  EXPECT_EQ(points.at(0).at("commit"), "a1");
  EXPECT_TRUE(points.at(0).at("change").is_null());
  EXPECT_TRUE(points.at(1).at("commit").is_null());
  EXPECT_EQ(points.at(1).at("began"), "2026-01-02T02:00:02");
  EXPECT_EQ(points.at(1).at("verdict"), "regression");
  EXPECT_EQ(points.at(1).at("runs").size(), 5u);
}

TEST_F(HistoryTest, ThePageHoldsItsDataAndNeedsNoOtherFile) {
  add_five("20260101", "a<1", 100);
  const History made = history({.title = "A & <b>"});
  const std::string page = history_page(made);
  EXPECT_NE(page.find("<h1>A &amp; &lt;b&gt;</h1>"), std::string::npos);
  EXPECT_NE(page.find("<canvas id=\"chart-history\""), std::string::npos);
  EXPECT_NE(page.find(script_json(history_json(made))), std::string::npos);
  for (const char* outside : {"<link", " src=", "@import", "url(", "fetch(", "eval("})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
}

}  // namespace
}  // namespace plumb
