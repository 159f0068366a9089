// --as-published reproduces the mistakes of DLPerf's scripts. The expected texts were printed by the scripts
// themselves on the same folders.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "results/analysis/analyze.h"
#include "tests/bench/expect_error.h"
#include "tests/results/synthetic_log.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

std::string published(const ScratchFolder& folder, const std::string& dialect, WindowChoice window = {}) {
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

// One value per line of a face dialect, in the format its script parses.
std::string lines_of(const std::vector<double>& values, const char* format) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    char line[200];
    std::snprintf(line, sizeof line, format, static_cast<int>(i), values[i]);
    text += std::string(line) + "\n";
  }
  return text;
}

constexpr const char* kArcface = "INFO:root:Iter[0] Batch [%d]\tSpeed: %.2f samples/sec\tacc=0.0";
constexpr const char* kPartialFc = "-Iter:%d Rank:1.00 it/sec Total:%.2f it/sec [0][loss]:45.10";
constexpr const char* kOneflow = "train: iter %d, loss 45.2, throughput: %.3f";
constexpr const char* kQps = "Pass:0 batch:%d lr:0.0125 loss:40.0 qps:%.2f";

std::string average_of(const char* dialect, const char* case_name, const std::string& text,
                       WindowChoice window = {}) {
  const ScratchFolder folder;
  folder.write(std::string(case_name) + "/r50_b64_fp32_1.log", text);
  const std::string all = published(folder, dialect, window), key = "\"average_speed\": ";
  const std::size_t at = all.rfind(key) + key.size();
  return all.substr(at, all.find_first_of(",}", at) - at);
}

TEST(AsPublished, MxnetArcfaceAveragesWhatThereIsOfLinesTwoToSixAndMultipliesByNodes) {
  EXPECT_EQ(average_of("mxnet_arcface", "1n1g", lines_of({9, 1, 2, 3, 4, 5, 9}, kArcface)), "3.0");
  EXPECT_EQ(average_of("mxnet_arcface", "4n8g", lines_of({9, 1.26, 2.26}, kArcface)), "7.2");
  EXPECT_EQ(average_of("mxnet_arcface", "1n1g", lines_of({9}, kArcface)), "NaN");
  EXPECT_EQ(average_of("mxnet_arcface", "1n1g", lines_of({9, 9, 2, 4, 9}, kArcface), {90, 40}), "3.0");
}

TEST(AsPublished, MxnetPartialFcAveragesToTheEndOfTheFile) {
  std::vector<double> values(300, 100);
  std::fill(values.begin(), values.begin() + 19, 1);
  values.back() = 381;
  EXPECT_EQ(average_of("mxnet_partial_fc", "2n8g", lines_of(values, kPartialFc)), "101.0");
  EXPECT_EQ(average_of("mxnet_partial_fc", "2n8g", lines_of({1, 2, 7}, kPartialFc), {120, 0}), "7.0");
  EXPECT_EQ(average_of("mxnet_partial_fc", "2n8g", lines_of({1, 2, 7}, kPartialFc)), "NaN");
}

TEST(AsPublished, OneflowFaceTakes101LinesAndCountsAShortLogAsZero) {
  std::vector<double> values(126, 100);
  std::fill(values.begin(), values.begin() + 25, 1);
  values[25] = 201;
  EXPECT_EQ(average_of("oneflow_face", "1n4g", lines_of(values, kOneflow)), "101.0");
  values.pop_back();
  EXPECT_EQ(average_of("oneflow_face", "1n4g", lines_of(values, kOneflow)), "0");
}

TEST(AsPublished, PlscSlicesLinesByNodesWhateverRankWroteThem) {
  std::vector<double> values(64, 100);
  for (int i = 5; i < 15; ++i) values[static_cast<std::size_t>(i)] = i;
  for (int i = 20; i < 60; ++i) values[static_cast<std::size_t>(i)] = 50;
  EXPECT_EQ(average_of("plsc", "1n4g", lines_of(values, kQps)), "9.5");
  EXPECT_EQ(average_of("plsc", "4n8g", lines_of(values, kQps)), "50.0");
  values.resize(15);
  EXPECT_EQ(average_of("plsc", "4n8g", lines_of(values, kQps)), "NaN");
}

TEST(AsPublished, FaceScriptsDieOnLinesWithoutTheirNumber) {
  const auto expect_death = [](const char* dialect, const std::string& line, const char* word,
                               WindowChoice window = {}) {
    expect_error(ExitCode::bad_data, {word, "--as-published"},
                 [&] { average_of(dialect, "1n1g", line + "\n", window); });
  };
  expect_death("mxnet_arcface", "INFO:root:Epoch[0] Batch [20] Speed: 12 samples/sec", "Speed");
  expect_death("mxnet_arcface", "", "multiple of 20", {150, 50});
  expect_death("mxnet_partial_fc", "Rank:1.0 it/sec Total: 1.0 it/sec", "Total");
  expect_death("oneflow_face", "train: iter x, loss 1, throughput: 1", "iter");
  expect_death("oneflow_face", "train: iter 6, loss 1, throughput:1", "throughput", {120, 1});
  expect_death("plsc", "Pass:0 batch:0 qps:12", "qps");
}

TEST(AsPublished, ACaseOfNoDevicesIsRefusedWhereRanksAreCounted) {
  expect_error(ExitCode::bad_data, {"1n0g", "0 ranks", "--as-published"},
               [] { average_of("ngc_mxnet_speed", "1n0g", "no line with a speed\n"); });
}

TEST(AsPublished, AcceptsAnyCaseWhereTheScriptNeverReadsIt) {
  const ScratchFolder folder;
  folder.write("1n128g/m_b128_fp32_1.log", log_text({}));
  EXPECT_NE(published(folder, "mxnet_rn50v1b").find("\"1n128g\": {\"average_speed\": 512.0"),
            std::string::npos);
}

}  // namespace
}  // namespace plumb
