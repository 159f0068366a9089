// --as-published repeats what DLPerf's scripts do where they go wrong. The expected texts were printed by the
// scripts themselves, run on the same folders.
#include <gtest/gtest.h>

#include "results/analyze.h"
#include "tests/bench/expect_error.h"
#include "tests/results/synthetic_log.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

std::string published(const ScratchFolder& folder, const std::string& dialect, Window window = {}) {
  return dictionary_text(
      analyze_logs(folder.path(), {.dialect = dialect, .window = window, .as_published = true}).dictionary);
}

TEST(AsPublished, ShowsAnEmptyOneDeviceCaseWhereItIsMissing) {
  const ScratchFolder folder;
  folder.write("1n2g/m_b128_fp32_1.log", log_text({.images_per_step = 256}));
  folder.write("1n2g/m_b128_fp32_2.log", log_text({.seconds = 0.5, .images_per_step = 256}));
  for (const char* dialect : {"paddle_speed", "paddle_time", "mxnet_rn50v1b"})
    EXPECT_EQ(published(folder, dialect),
              R"({"m": {"1n1g": {"average_speed": {}}, "1n2g": {"average_speed": 512.0, )"
              R"("batch_size_per_device": 128, "speedup": 1.0}}})");
}

TEST(AsPublished, AveragesShortLogsOfPaddleSpeed) {
  const ScratchFolder folder;
  folder.write("1n1g/m_b128_fp32_1.log", log_text({}));
  folder.write("1n1g/m_b128_fp32_2.log", log_text({.seconds = 0.5, .iterations = 21}));
  EXPECT_EQ(published(folder, "paddle_speed"),
            R"({"m": {"1n1g": {"average_speed": 384.0, "batch_size_per_device": 128, "median_speed": 384.0, )"
            R"("speedup": 1.0}}})");
}

TEST(AsPublished, MakesNoNumberOfAPaddleSpeedLogOfWarmUpOnly) {
  const ScratchFolder folder;
  folder.write("1n1g/m_b128_fp32_1.log", log_text({.iterations = 20}));
  EXPECT_EQ(published(folder, "paddle_speed"),
            R"({"m": {"1n1g": {"average_speed": NaN, "batch_size_per_device": 128, "median_speed": NaN, )"
            R"("speedup": NaN}}})");
}

TEST(AsPublished, CountsAPaddleTimeLogWithoutEndAsZero) {
  const ScratchFolder folder;
  folder.write("1n1g/m_b128_fp32_1.log", log_text({.iterations = 119}));
  EXPECT_EQ(published(folder, "paddle_time"),
            R"({"m": {"1n1g": {"average_speed": 0, "batch_size_per_device": 128, "speedup": 1.0}}})");
}

TEST(AsPublished, StartsMxnetsWindowTwentyEarlyAboveTwenty) {
  const ScratchFolder folder;
  std::vector<std::string> lines = log_lines({});
  for (int i = 0; i < 40; ++i) lines[i] = log_line({.seconds = 0.5}, i);
  folder.write("1n1g/m_b128_fp32_1.log", joined(lines));
  // Iterations 20 to 120: 20 at 256 and 80 at 512.
  EXPECT_NE(published(folder, "mxnet_rn50v1b", {120, 40}).find("\"average_speed\": 460.8,"),
            std::string::npos);
  EXPECT_NE(dictionary_text(
                analyze_logs(folder.path(), {.dialect = "mxnet_rn50v1b", .window = {120, 40}}).dictionary)
                .find("\"average_speed\": 512.0,"),
            std::string::npos);
}

TEST(AsPublished, LetsAFileOfTheSameRunNumberReplaceTheEarlier) {
  const ScratchFolder folder;
  folder.write("1n1g/m_b128_fp32_1.log", log_text({}));
  folder.write("1n1g/m_b128_fp32_1_rank0.log", log_text({.seconds = 0.5}));
  EXPECT_NE(published(folder, "paddle_speed").find("\"average_speed\": 256.0,"), std::string::npos);
}

TEST(AsPublished, EndsWhereTheScriptDiesAndNamesTheFile) {
  const auto expect_death = [](const char* dialect, const char* name, const std::string& text,
                               const char* word) {
    const ScratchFolder folder;
    folder.write(name, text);
    expect_error(ExitCode::bad_data, {name, word, "--as-published"}, [&] { published(folder, dialect); });
  };
  const std::string good = log_text({});
  expect_death("paddle_speed", "10n8g/m_b128_fp32_1.log", good, "number of devices");
  expect_death("paddle_speed", "1n128g/m_b128_fp32_1.log", good, "four nor five");
  expect_death("paddle_speed", "1n1g/m_bz128_fp32_1.log", good, "batch");
  expect_death("paddle_speed", "1n1g/m.log", good, "fields");
  expect_death("paddle_speed", "1n1g/m_b128_fp32_1.log", "2 s elapsed\n", "elapse");
  expect_death("paddle_speed", "1n1g/m_b128_fp32_1.log", "elapse 0 sec\n", "elapse is 0");
  expect_death("paddle_time", "1n1g/m_b128_fp32_1.log", "elapse train batch 119]\n", "stamp");
  expect_death("mxnet_rn50v1b", "1n1g/m_b128_fp32_1.log", log_text({.iterations = 119}), "119 lines");
  expect_death("mxnet_rn50v1b", "1n1g/m_b128_fp32_1.log", "Epoch[0] Batch[1] Loss[1.0]\n", "Speed");
}

TEST(AsPublished, AcceptsAnyCaseWhereTheScriptNeverReadsIt) {
  const ScratchFolder folder;
  folder.write("1n128g/m_b128_fp32_1.log", log_text({}));
  EXPECT_NE(published(folder, "mxnet_rn50v1b").find("\"1n128g\": {\"average_speed\": 512.0"),
            std::string::npos);
}

}  // namespace
}  // namespace plumb
