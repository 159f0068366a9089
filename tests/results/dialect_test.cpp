// Whole logs give their speed.
#include "results/formats/dialect.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/results/synthetic_log.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

using Lines = std::vector<std::string>;

LogReading read_text(const Dialect& dialect, const std::string& text, double images_per_step = 128,
                     Window window = {}) {
  const ScratchFolder folder;
  return read_log(dialect, folder.write("a.log", text), window, {.images_per_step = images_per_step});
}

// Dialects that can read Plumbline's own layout.
std::vector<const Dialect*> dialects_of_own_logs() {
  return {&kPaddleSpeed, &kPaddleTime, &kMxnetRn50v1b};
}

class DialectOfOwnLogs : public testing::TestWithParam<const Dialect*> {};
INSTANTIATE_TEST_SUITE_P(Logs, DialectOfOwnLogs, testing::ValuesIn(dialects_of_own_logs()),
                         [](const auto& dialect) { return std::string(dialect.param->name); });

TEST_P(DialectOfOwnLogs, LooksOnlyAtTheWindow) {
  Lines lines = log_lines({.iterations = 140});
  for (int i = 0; i < 20; ++i) lines[i] = log_line({.seconds = 0.01}, i);
  for (int i = 120; i < 140; ++i) lines[i] = log_line({.seconds = 0.5}, i);
  const LogReading log = read_text(*GetParam(), joined(lines));
  ASSERT_FALSE(log.defect) << log.defect->text;
  // Iteration 19's timestamp belongs to the fast start, so the timestamps see the whole jump.
  EXPECT_EQ(log.images_per_second, GetParam() == &kPaddleTime ? std::rint(100 * 128 / 0.298) / 100 : 512);
}

TEST_P(DialectOfOwnLogs, TakesAWindowOfItsOwn) {
  const LogReading log =
      read_text(*GetParam(), log_text({.iterations = 6}), 128, {.iterations = 6, .warmup = 2});
  ASSERT_FALSE(log.defect) << log.defect->text;
  EXPECT_EQ(log.images_per_second, 512);
}

TEST(Dialect, IsKnownByName) {
  for (const Dialect* dialect : dialects()) EXPECT_EQ(find_dialect(dialect->name), dialect);
}

TEST(Dialect, IsNotFoundByAnotherName) {
  EXPECT_EQ(find_dialect("paddle"), nullptr);
}

TEST(InWholeLines, CutsIterationsAndRaisesTheWarmUp) {
  const auto text = [](const Dialect& dialect, const Window& wanted, std::int64_t step) {
    const std::optional<Window> window = in_whole_lines(dialect, wanted, step);
    return window ? std::to_string(window->warmup) + " of " + std::to_string(window->iterations) : "none";
  };
  EXPECT_EQ(text(kPlsc, {45, 11}, 10), "20 of 40");
  EXPECT_EQ(text(kPlsc, {45, 41}, 10), "none");
  EXPECT_EQ(text(kPaddleSpeed, {40, 0}, 1), "0 of 40");
  EXPECT_EQ(text(kPaddleTime, {40, 0}, 1), "1 of 40");
  EXPECT_EQ(text(kNgcTfSpeed, {40, 5}, 1), "20 of 40");
}

TEST(RecogniseDialect, ReadsOwnLogsAsPaddleSpeedAndOthersByTheirLines) {
  const ScratchFolder folder;
  EXPECT_EQ(recognise_dialect(folder.write("own.log", log_text({}))), &kPaddleSpeed);
  EXPECT_EQ(recognise_dialect(
                folder.write("mx.log", "Namespace()\nEpoch[0] Batch[0]\tSpeed: 384.19 samples/sec\n")),
            &kMxnetRn50v1b);
  EXPECT_EQ(recognise_dialect(folder.write("none.log", "hello\n")), nullptr);
}

}  // namespace
}  // namespace plumb
