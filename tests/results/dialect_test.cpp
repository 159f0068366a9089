// Whole logs give their speed; every kind of damage is named, in every dialect.
#include "results/dialects/dialect.h"

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

// Each dialect's finding in a damaged log.
void expect_flaw(Flaw flaw, const std::string& words, const std::string& text, double images_per_step = 128) {
  for (const Dialect* dialect : dialects_of_own_logs()) {
    const LogReading log = read_text(*dialect, text, images_per_step);
    ASSERT_TRUE(log.defect) << dialect->name;
    EXPECT_EQ(flaw_name(log.defect->flaw), flaw_name(flaw)) << dialect->name << ": " << log.defect->reason;
    EXPECT_NE(log.defect->reason.find(words), std::string::npos) << log.defect->reason;
  }
}

class DialectOfOwnLogs : public testing::TestWithParam<const Dialect*> {};
INSTANTIATE_TEST_SUITE_P(Logs, DialectOfOwnLogs, testing::ValuesIn(dialects_of_own_logs()),
                         [](const auto& dialect) { return std::string(dialect.param->name); });

TEST_P(DialectOfOwnLogs, ReadsPlumblinesOwnLayout) {
  const LogReading log = read_text(*GetParam(), log_text({}));
  ASSERT_FALSE(log.defect) << log.defect->reason;
  EXPECT_EQ(log.images_per_second, 512);
}

TEST_P(DialectOfOwnLogs, ReadsEveryEndOfLineAndOtherLinesBetween) {
  for (const char* end : {"\n", "\r\n", "\r"}) {
    Lines lines = log_lines({});
    lines.insert(lines.begin() + 50, {"", "epoch 0", std::string(1, '\0')});
    const LogReading log = read_text(*GetParam(), joined(lines, end));
    ASSERT_FALSE(log.defect) << log.defect->reason;
    EXPECT_EQ(log.images_per_second, 512);
  }
}

TEST_P(DialectOfOwnLogs, LooksOnlyAtTheWindow) {
  Lines lines = log_lines({.iterations = 140});
  for (int i = 0; i < 20; ++i) lines[i] = log_line({.seconds = 0.01}, i);
  for (int i = 120; i < 140; ++i) lines[i] = log_line({.seconds = 0.5}, i);
  const LogReading log = read_text(*GetParam(), joined(lines));
  ASSERT_FALSE(log.defect) << log.defect->reason;
  // Iteration 19's timestamp belongs to the fast start, so the timestamps see the whole jump.
  EXPECT_EQ(log.images_per_second, GetParam() == &kPaddleTime ? std::rint(100 * 128 / 0.298) / 100 : 512);
}

TEST_P(DialectOfOwnLogs, TakesAWindowOfItsOwn) {
  const LogReading log =
      read_text(*GetParam(), log_text({.iterations = 6}), 128, {.iterations = 6, .warmup = 2});
  ASSERT_FALSE(log.defect) << log.defect->reason;
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

TEST(ReadLog, NamesEmptyAndForeignFiles) {
  expect_flaw(Flaw::empty, "it is empty", "");
  expect_flaw(Flaw::empty, "no line of dialect", "hello\nworld\n");
}

TEST(ReadLog, NamesATruncatedLog) {
  expect_flaw(Flaw::truncated, "119 of the 120", log_text({.iterations = 119}));
  expect_flaw(Flaw::truncated, "1 of the 120", log_text({.iterations = 1}));
}

TEST(ReadLog, NamesATornLastLine) {
  Lines lines = log_lines({});
  lines.back().resize(lines.back().find("elapse") + 9);
  lines.back() += " Epoch[0] Batch[120]";
  const LogReading speed = read_text(kPaddleSpeed, joined(lines));
  ASSERT_TRUE(speed.defect);
  EXPECT_EQ(speed.defect->flaw, Flaw::malformed);
  EXPECT_NE(speed.defect->reason.find("line 120"), std::string::npos);
  EXPECT_EQ(read_text(kMxnetRn50v1b, joined(lines)).defect->flaw, Flaw::malformed);
}

TEST(ReadLog, NamesAMissingIteration) {
  Lines lines = log_lines({.iterations = 130});
  lines.erase(lines.begin() + 40);
  expect_flaw(Flaw::truncated, "missing at line 41", joined(lines));
  lines = log_lines({.iterations = 130});
  lines.erase(lines.begin(), lines.begin() + 2);
  expect_flaw(Flaw::truncated, "missing at line 1", joined(lines));
}

TEST(ReadLog, NamesADuplicatedLine) {
  Lines lines = log_lines({});
  lines.insert(lines.begin() + 40, lines[39]);
  expect_flaw(Flaw::duplicated, "line 41", joined(lines));
  lines = log_lines({.iterations = 119});  // 120 lines, as the scripts require
  lines.insert(lines.begin() + 40, lines[39]);
  expect_flaw(Flaw::duplicated, "line 41", joined(lines));
}

TEST(ReadLog, NamesTwoRunsInOneFile) {
  const Lines fast = log_lines({}), slow = log_lines({.seconds = 0.3});
  Lines interleaved, appended = fast;
  for (std::size_t i = 0; i < fast.size(); ++i) {
    interleaved.push_back(fast[i]);
    interleaved.push_back(slow[i]);
  }
  appended.insert(appended.end(), slow.begin(), slow.end());
  expect_flaw(Flaw::mixed, "120 lines repeat", joined(interleaved));
  expect_flaw(Flaw::mixed, "120 lines repeat", joined(appended));
}

TEST(ReadLog, NamesALogOfAnotherBatch) {
  expect_flaw(Flaw::misnamed, "of 64 images per step", log_text({.images_per_step = 64}));
  expect_flaw(Flaw::misnamed, "say 1024", log_text({}), 1024);
}

TEST(ReadLog, NamesAFileThatIsNone) {
  const ScratchFolder folder;
  const LogReading log = read_log(kPaddleSpeed, folder.path(), {}, {.images_per_step = 128});
  ASSERT_TRUE(log.defect);
  EXPECT_EQ(log.defect->flaw, Flaw::unreadable);
}

TEST(ReadLog, NamesTimesThatAreNone) {
  for (const char* seconds : {"0", "0.000000", "-1", "nan", "inf", "1e999", "1e-999", "x", ""}) {
    Lines lines = log_lines({});
    lines[60] = "[Pass 0, train batch 60] elapse " + std::string(seconds) + " sec";
    const LogReading log = read_text(kPaddleSpeed, joined(lines));
    ASSERT_TRUE(log.defect) << seconds;
    EXPECT_EQ(log.defect->flaw, Flaw::malformed) << seconds;
    EXPECT_NE(log.defect->reason.find("line 61"), std::string::npos) << log.defect->reason;
  }
}

TEST(ReadLog, NamesSpeedsThatAreNone) {
  for (const char* speed : {"0.00", "-1.00", "nan", "1e999", "x", "1.0.0"}) {
    Lines lines = log_lines({});
    lines[60] = "Epoch[0] Batch[61]\tSpeed: " + std::string(speed) + " samples/sec";
    const LogReading log = read_text(kMxnetRn50v1b, joined(lines));
    ASSERT_TRUE(log.defect) << speed;
    EXPECT_EQ(log.defect->flaw, Flaw::malformed) << speed;
  }
}

TEST(ReadLog, NamesStampsThatAreNone) {
  const auto with_stamp = [](const std::string& stamp) {
    Lines lines = log_lines({});
    lines[60].replace(0, 23, stamp);
    return read_text(kPaddleTime, joined(lines)).defect.value_or(Defect{});
  };
  EXPECT_NE(with_stamp("").reason.find("no stamp"), std::string::npos);
  EXPECT_NE(with_stamp("2025-02-30 00:00:00,000").reason.find("no date"), std::string::npos);
  EXPECT_NE(with_stamp("2024-02-01 00:00:00,000").reason.find("earlier stamp"), std::string::npos);
}

TEST(ReadLog, NamesAWindowInWhichNoTimePasses) {
  Lines lines = log_lines({});
  for (std::string& line : lines) line.replace(0, 23, "2025-01-01 00:00:00,000");
  const LogReading log = read_text(kPaddleTime, joined(lines));
  ASSERT_TRUE(log.defect);
  EXPECT_NE(log.defect->reason.find("no time passes"), std::string::npos);
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
