// OneFlow face, PLSC, MXNet ArcFace and MXNet Partial FC: lines in the window, and names of defects.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "results/formats/dialect.h"
#include "tests/results/synthetic_log.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

using Lines = std::vector<std::string>;

std::vector<const Dialect*> face_dialects() {
  return {&kMxnetArcface, &kMxnetPartialFc, &kOneflowFace, &kPlsc};
}

// Lines as Plumbline writes them, `iterations` at 512 images/s.
Lines lines_of(const Dialect& dialect, std::int64_t iterations, const RunSize& size = {}) {
  Lines lines;
  const LineFormat& format = dialect.format;
  for (std::int64_t first = format.first_iteration; first + format.iterations_per_line <= iterations;
       first += format.iterations_per_line)
    lines.push_back(format.line({.first = first,
                                 .last = first + format.iterations_per_line - 1,
                                 .images_per_second = 512,
                                 .loss = 45.1,
                                 .learning_rate = 0.1,
                                 .stamp = "2025-01-02 23:59:53,657"},
                                size));
  return lines;
}

std::string with_speed(const Dialect& dialect, std::int64_t line, double images_per_second) {
  const std::int64_t step = dialect.format.iterations_per_line;
  const std::int64_t first = dialect.format.first_iteration + line * step;
  return dialect.format.line({.first = first,
                              .last = first + step - 1,
                              .images_per_second = images_per_second,
                              .stamp = "2025-01-02 23:59:53,657"},
                             {});
}

LogReading read_text(const Dialect& dialect, const std::string& text, const RunSize& size = {}) {
  const ScratchFolder folder;
  return read_log(dialect, folder.write("a.log", text), dialect.default_window, size);
}

class FaceDialect : public testing::TestWithParam<const Dialect*> {
 protected:
  const Dialect& dialect() const { return *GetParam(); }
  // Iterations required by its default window.
  std::int64_t iterations() const {
    return &dialect() == &kOneflowFace ? 126 : dialect().default_window.iterations;
  }
  void expect_flaw(Flaw flaw, const std::string& words, const std::string& text, const RunSize& size = {}) {
    const LogReading log = read_text(dialect(), text, size);
    ASSERT_TRUE(log.defect) << words;
    EXPECT_EQ(flaw_name(log.defect->flaw), flaw_name(flaw)) << log.defect->reason;
    EXPECT_NE(log.defect->reason.find(words), std::string::npos) << log.defect->reason;
  }
};
INSTANTIATE_TEST_SUITE_P(Logs, FaceDialect, testing::ValuesIn(face_dialects()),
                         [](const auto& dialect) { return std::string(dialect.param->name); });

TEST_P(FaceDialect, ReadsWhatIsWrittenInItWithAnyEndOfLineAndOtherLinesBetween) {
  for (const char* end : {"\n", "\r\n", "\r"}) {
    Lines lines = lines_of(dialect(), iterations());
    lines.insert(lines.begin() + 3, {"", "Namespace()", std::string(1, '\0')});
    const LogReading log = read_text(dialect(), joined(lines, end));
    ASSERT_FALSE(log.defect) << log.defect->reason;
    EXPECT_EQ(log.images_per_second, 512);
    EXPECT_EQ(log.caveat, "");
  }
}

TEST_P(FaceDialect, IsRecognisedByItsLines) {
  const ScratchFolder folder;
  EXPECT_EQ(recognise_dialect(folder.write("a.log", "Namespace()\n" + joined(lines_of(dialect(), 40)))),
            &dialect());
}

TEST_P(FaceDialect, NamesEmptyForeignAndTruncatedFiles) {
  expect_flaw(Flaw::empty, "it is empty", "");
  expect_flaw(Flaw::empty, "no line of dialect", "hello\nworld\n");
  Lines lines = lines_of(dialect(), iterations());
  const std::string wanted = std::to_string(lines.size());
  lines.pop_back();
  expect_flaw(Flaw::truncated, std::to_string(lines.size()) + " of the " + wanted, joined(lines));
}

TEST_P(FaceDialect, NamesATornLastLine) {
  const std::string whole = joined(lines_of(dialect(), iterations()));
  const std::size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  // Truncated anywhere before the value's last digit, no figure may result.
  const std::size_t value_end = whole.rfind(&dialect() == &kMxnetArcface     ? " samples/sec"
                                            : &dialect() == &kMxnetPartialFc ? " it/sec"
                                                                             : "\n");
  for (std::size_t size = last; size < value_end; ++size)
    EXPECT_TRUE(read_text(dialect(), whole.substr(0, size)).defect) << whole.substr(last, size - last);
  EXPECT_FALSE(read_text(dialect(), whole.substr(0, whole.size() - 1)).defect) << "only the end is missing";
}

TEST_P(FaceDialect, NamesMissingRepeatedAndMixedLines) {
  const Lines good = lines_of(dialect(), iterations() + 40);
  Lines lines = good;
  lines.erase(lines.begin() + 4);
  expect_flaw(Flaw::truncated, "missing at line 5", joined(lines));
  lines.assign(good.begin() + 3, good.end());
  expect_flaw(Flaw::truncated, "missing at line 1", joined(lines));
  lines = good;
  lines.insert(lines.end(), good.begin(), good.end());
  expect_flaw(Flaw::mixed, "lines repeat", joined(lines));
  lines.clear();
  for (const std::string& line : good) lines.insert(lines.end(), 3, line);
  expect_flaw(Flaw::mixed, "more than one run", joined(lines));
  lines = good;
  lines.insert(lines.begin() + 2, good[1]);
  EXPECT_TRUE(read_text(dialect(), joined(lines)).defect);
}

TEST_P(FaceDialect, NamesSpeedsAndIterationsThatAreNone) {
  for (const char* speed : {"0.00", "0.000", "-1.00", "nan", "inf", "x", "", "1e999"}) {
    Lines lines = lines_of(dialect(), iterations());
    std::string& line = lines[5];
    line.replace(line.find("512.0"), &dialect() == &kOneflowFace ? 7 : 6, speed);
    if (&dialect() == &kMxnetPartialFc)
      line.replace(line.find("Total:512.00"), 12, "Total:" + std::string(speed));
    expect_flaw(Flaw::malformed, "line 6", joined(lines));
  }
  Lines lines = lines_of(dialect(), iterations());
  const std::string number = std::to_string(&dialect() == &kMxnetArcface     ? 20
                                            : &dialect() == &kMxnetPartialFc ? 2
                                                                             : 0);
  for (const char* index : {"x", "-5", "99999999999999999999", ""}) {
    Lines bad = lines;
    const std::string mark = &dialect() == &kMxnetArcface     ? "Batch ["
                             : &dialect() == &kMxnetPartialFc ? "Iter:"
                             : &dialect() == &kOneflowFace    ? "iter "
                                                              : "batch:";
    bad[0].replace(bad[0].find(mark + number) + mark.size(), number.size(), index);
    expect_flaw(Flaw::malformed, "line 1", joined(bad));
  }
}

TEST(MxnetArcface, WindowIsLinesTwoToSixTimesNodesRoundedToOneDecimal) {
  Lines lines = lines_of(kMxnetArcface, 160);
  for (const int i : {0, 6, 7}) lines[static_cast<std::size_t>(i)] = with_speed(kMxnetArcface, i, 9000);
  EXPECT_EQ(read_text(kMxnetArcface, joined(lines)).images_per_second, 512);
  for (int i = 1; i < 6; ++i) lines[static_cast<std::size_t>(i)] = with_speed(kMxnetArcface, i, 1195.56);
  EXPECT_EQ(read_text(kMxnetArcface, joined(lines)).images_per_second, 1195.6);
  EXPECT_EQ(read_text(kMxnetArcface, joined(lines), {.nodes = 4}).images_per_second, 4782.4);
}

TEST(MxnetArcface, ReadsRangesOfBatchesAndModelParallelRuns) {
  std::string text;
  for (int i = 0; i < 6; ++i)
    text += "INFO:root:Iter[0] Batch [" + std::to_string(20 * i) + "-" + std::to_string(20 * i + 20) +
            "]\tSpeed: 512.00 samples/sec\tacc=0.0\n";
  EXPECT_EQ(read_text(kMxnetArcface, text).images_per_second, 512);
}

TEST(MxnetArcface, RefusesLinesThatAreNotTwentyIterationsApart) {
  std::string text;
  for (int i = 0; i < 120; ++i)
    text += "INFO:root:Epoch[0] Batch[" + std::to_string(i + 1) + "]\tSpeed: 512.00 samples/sec\n";
  EXPECT_TRUE(read_text(kMxnetArcface, text).defect);
  const ScratchFolder folder;
  EXPECT_EQ(recognise_dialect(folder.write("a.log", text)), &kMxnetRn50v1b);
}

TEST(MxnetPartialFc, WindowIsFromLineTwentyToTheEnd) {
  Lines lines = lines_of(kMxnetPartialFc, 220);
  for (int i = 0; i < 19; ++i) lines[static_cast<std::size_t>(i)] = with_speed(kMxnetPartialFc, i, 9000);
  EXPECT_EQ(read_text(kMxnetPartialFc, joined(lines)).images_per_second, 512);
  lines.back() = with_speed(kMxnetPartialFc, 218, 712);
  EXPECT_EQ(read_text(kMxnetPartialFc, joined(lines)).images_per_second, 513);
}

TEST(OneflowFace, WindowIsIterations25To125) {
  Lines lines = lines_of(kOneflowFace, 160);
  for (int i = 0; i < 160; ++i)
    if (i < 25 || i > 125) lines[static_cast<std::size_t>(i)] = with_speed(kOneflowFace, i, 9000);
  EXPECT_EQ(read_text(kOneflowFace, joined(lines)).images_per_second, 512);
  lines[25] = with_speed(kOneflowFace, 25, 613);
  EXPECT_EQ(read_text(kOneflowFace, joined(lines)).images_per_second, 513);
  lines[125] = with_speed(kOneflowFace, 125, 613);
  EXPECT_EQ(read_text(kOneflowFace, joined(lines)).images_per_second, 514);
}

TEST(OneflowFace, CountsFromOneAsWell) {
  Lines lines = lines_of(kOneflowFace, 126);
  lines.erase(lines.begin());
  EXPECT_EQ(read_text(kOneflowFace, joined(lines)).images_per_second, 512);
}

// Each line `ranks` times; warm-up lines at a tenth of the speed.
std::string teed_plsc_log(int ranks, std::size_t lines) {
  std::string text;
  for (std::size_t i = 0; i < lines; ++i)
    for (int rank = 0; rank < ranks; ++rank)
      text += with_speed(kPlsc, static_cast<std::int64_t>(i), i < 5 ? 51.2 : 512) + "\n";
  return text;
}

TEST(Plsc, CountsBatchesWhateverTheNumberOfRanksInALog) {
  for (const int ranks : {1, 2, 4, 8, 16}) {
    const LogReading log = read_text(kPlsc, teed_plsc_log(ranks, 16), {.devices_per_node = ranks});
    ASSERT_FALSE(log.defect) << log.defect->reason;
    EXPECT_EQ(log.images_per_second, 512);
    EXPECT_EQ(log.caveat.empty(), ranks == 1);
  }
}

TEST(Plsc, SaysWhichBatchesThePublishedSliceTakes) {
  const auto caveat = [](int ranks, const RunSize& size) {
    return read_text(kPlsc, teed_plsc_log(ranks, 16), size).caveat;
  };
  EXPECT_NE(caveat(8, {.devices_per_node = 8}).find("[5:15] takes lines of batches 0 to 10"),
            std::string::npos);
  EXPECT_NE(caveat(4, {.devices_per_node = 4}).find("[5:15] takes lines of batches 10 to 30"),
            std::string::npos);
  EXPECT_NE(caveat(8, {.nodes = 2, .devices_per_node = 8}).find("[10:30] takes lines of batches 10 to 30"),
            std::string::npos);
  EXPECT_NE(caveat(1, {.nodes = 2, .devices_per_node = 8}).find("[10:30] takes lines of batches 100 to 150"),
            std::string::npos);
  EXPECT_NE(caveat(1, {.nodes = 4, .devices_per_node = 8}).find("[20:60] takes no line at all"),
            std::string::npos);
}

TEST(Plsc, RefusesLogsInWhichARankIsMissing) {
  std::string text = teed_plsc_log(8, 15);
  text.erase(text.rfind("INFO"));
  const LogReading log = read_text(kPlsc, text, {.devices_per_node = 8});
  ASSERT_TRUE(log.defect);
  EXPECT_EQ(log.defect->flaw, Flaw::truncated);
  EXPECT_NE(log.defect->reason.find("iteration 140 has 7 lines, the first one 8"), std::string::npos);
}

TEST(FaceDialects, NeverCrashOnDamageNorInventANumber) {
  const ScratchFolder folder;
  std::mt19937 random(20250103);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  const Lines tokens{"train: iter ",
                     ", loss ",
                     "throughput: ",
                     "Rank:",
                     "Total:",
                     " it/sec",
                     "Speed: ",
                     "\r",
                     "\n",
                     "-1",
                     "1e999",
                     "nan",
                     "9999999999.99",
                     "Pass:0 batch:",
                     " qps:",
                     "INFO:root:Epoch[0] Batch [",
                     std::string(1, '\0'),
                     "\xff\xfe",
                     "Iter:",
                     "]",
                     std::string(70000, '7')};
  for (int round = 0; round < 300; ++round) {
    const Dialect& made = *face_dialects()[static_cast<std::size_t>(round) % 4];
    std::string text = joined(lines_of(made, 160));
    for (std::size_t i = below(4) + 1; i > 0; --i) {
      const std::size_t at = below(text.size());
      if (random() % 2) text.insert(at, tokens[below(tokens.size())]);
      if (random() % 2) text.erase(at, below(200));
      if (random() % 4 == 0) text[below(text.size())] = static_cast<char>(random());
    }
    const auto file = folder.write("a.log", text);
    recognise_dialect(file);
    for (const Dialect* dialect : dialects()) {
      const LogReading log = read_log(*dialect, file, dialect->default_window, {.images_per_step = 128});
      EXPECT_TRUE(log.defect || (std::isfinite(log.images_per_second) && log.images_per_second > 0));
    }
  }
}

}  // namespace
}  // namespace plumb
