// OneFlow face, PLSC, MXNet ArcFace and MXNet Partial FC: lines in the window, and names of defects.
#include <gtest/gtest.h>

#include "results/formats/dialect.h"
#include "tests/results/synthetic_log.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

using Lines = std::vector<std::string>;

// Lines as Plumbline writes them, `iterations` at 512 images/s.
Lines lines_of(const Dialect& dialect, std::int64_t iterations) {
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
                                {}));
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

}  // namespace
}  // namespace plumb
