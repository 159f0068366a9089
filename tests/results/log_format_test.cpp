// Whole logs give their speed.
#include <gtest/gtest.h>

#include <cmath>

#include "results/formats/read_log.h"
#include "tests/results/synthetic_log.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

using Lines = std::vector<std::string>;

LogReading read_text(const LogFormat& format, const std::string& text, double images_per_step = 128,
                     Window window = {}) {
  const ScratchFolder folder;
  return read_log(format, folder.write("a.log", text), window, {.images_per_step = images_per_step});
}

// Formats that can read Plumbline's own layout.
std::vector<const LogFormat*> formats_of_own_logs() {
  return {&kPaddleSpeed, &kPaddleTime, &kMxnetRn50v1b};
}

class FormatOfOwnLogs : public testing::TestWithParam<const LogFormat*> {};
INSTANTIATE_TEST_SUITE_P(Logs, FormatOfOwnLogs, testing::ValuesIn(formats_of_own_logs()),
                         [](const auto& format) { return std::string(format.param->name); });

TEST_P(FormatOfOwnLogs, LooksOnlyAtTheWindow) {
  Lines lines = log_lines({.iterations = 140});
  for (int i = 0; i < 20; ++i) lines[i] = log_line({.seconds = 0.01}, i);
  for (int i = 120; i < 140; ++i) lines[i] = log_line({.seconds = 0.5}, i);
  const LogReading log = read_text(*GetParam(), joined(lines));
  ASSERT_FALSE(log.defect) << log.defect->text;
  // Iteration 19's timestamp belongs to the fast start, so the timestamps see the whole jump.
  EXPECT_EQ(log.images_per_second, GetParam() == &kPaddleTime ? std::rint(100 * 128 / 0.298) / 100 : 512);
}

TEST_P(FormatOfOwnLogs, TakesAWindowOfItsOwn) {
  const LogReading log =
      read_text(*GetParam(), log_text({.iterations = 6}), 128, {.iterations = 6, .warmup = 2});
  ASSERT_FALSE(log.defect) << log.defect->text;
  EXPECT_EQ(log.images_per_second, 512);
}

TEST(LogFormat, IsKnownByName) {
  for (const LogFormat* format : log_formats()) EXPECT_EQ(find_log_format(format->name), format);
}

TEST(LogFormat, IsNotFoundByAnotherName) {
  EXPECT_EQ(find_log_format("paddle"), nullptr);
}

TEST(LogFormat, FitsItsExample) {
  for (const LogFormat* format : log_formats())
    for (std::string_view rest = format->example; !rest.empty();) {
      const std::size_t end = std::min(rest.find(" / "), rest.size());
      EXPECT_EQ(format->read_line(rest.substr(0, end), {128}).fit, Fit::whole) << rest;
      rest.remove_prefix(std::min(end + 3, rest.size()));
    }
}

TEST(InWholeLines, CutsIterationsAndRaisesTheWarmUp) {
  const auto text = [](const LogFormat& format, const Window& wanted, std::int64_t step) {
    const std::optional<Window> window = in_whole_lines(format, wanted, step);
    return window ? std::to_string(window->warmup) + " of " + std::to_string(window->iterations) : "none";
  };
  EXPECT_EQ(text(kPlsc, {45, 11}, 10), "20 of 40");
  EXPECT_EQ(text(kPlsc, {45, 41}, 10), "none");
  EXPECT_EQ(text(kPaddleSpeed, {40, 0}, 1), "0 of 40");
  EXPECT_EQ(text(kPaddleTime, {40, 0}, 1), "1 of 40");
  EXPECT_EQ(text(kNgcTfSpeed, {40, 5}, 1), "20 of 40");
}

TEST(RecognizeFormat, ReadsOwnLogsAsPaddleSpeedAndOthersByTheirLines) {
  const ScratchFolder folder;
  const auto format_of = [&](const std::string& text) {
    return recognize_format(folder.write("a.log", text)).format;
  };
  EXPECT_EQ(format_of(log_text({})), &kPaddleSpeed);
  EXPECT_EQ(format_of("Namespace()\nEpoch[0] Batch[0]\tSpeed: 384.19 samples/sec\n"), &kMxnetRn50v1b);
  EXPECT_EQ(format_of("hello\n"), nullptr);
}

TEST(RecognizeFormat, ShowsTheFirstLineThatLooksLikeTraining) {
  const ScratchFolder folder;
  const Recognition found = recognize_format(
      folder.write("a.log", "batch size 3\nhello\nstep 1 loss 7.1 at 3 it/s\nstep 2 loss 7.0 at 3 it/s\n"));
  EXPECT_TRUE(found.has_lines);
  EXPECT_EQ(found.training_line, "line 3: step 1 loss 7.1 at 3 it/s");
}

}  // namespace
}  // namespace plumb
