#include "results/analysis/analyze.h"

#include <gtest/gtest.h>

#include "tests/bench/expect_error.h"
#include "tests/results/dialect_sets.h"
#include "tests/results/run_folder.h"
#include "tests/results/synthetic_log.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

const std::filesystem::path& kData = kDialectData;

std::string flaws(const Analysis& analysis) {
  std::string text;
  for (const BadFile& file : analysis.bad)
    text += file.path + " " + std::string(flaw_name(file.defect.flaw)) + "\n";
  return text;
}

// One valid log at <case>/<name>, with `images` per step and the given step time.
void write_run(const ScratchFolder& folder, const std::string& name, std::int64_t images, double seconds) {
  folder.write(name, log_text({.seconds = seconds, .images_per_step = images}));
}

TEST(Analyze, ReadsOwnLogsAsPaddleSpeedUnlessTold) {
  EXPECT_EQ(analyze_logs(kData / "tree", {}).dialect, "paddle_speed");
}

TEST(Analyze, RoundsEachRunThenAveragesAndTakesTheMedian) {
  const ScratchFolder folder;
  write_run(folder, "1n1g/m_b100_fp32_1.log", 100, 0.3);   // 333.33
  write_run(folder, "1n1g/m_b100_fp32_2.log", 100, 0.6);   // 166.67
  write_run(folder, "1n1g/m_b100_fp32_3.log", 100, 0.25);  // 400
  write_run(folder, "1n2g/m_b100_fp32_1.log", 200, 0.4);   // 500
  const Analysis analysis = analyze_logs(folder.path(), {});
  EXPECT_EQ(
      dictionary_text(analysis.dictionary),
      R"({"m": {"1n1g": {"average_speed": 300.0, "batch_size_per_device": 100, "median_speed": 333.33, )"
      R"("speedup": 1.0}, "1n2g": {"average_speed": 500.0, "batch_size_per_device": 100, "median_speed": )"
      R"(500.0, "speedup": 1.5}}})");
  EXPECT_EQ(analysis.cases.front().runs, 3);
}

TEST(Analyze, NamesALogWithAStall) {
  const ScratchFolder folder;
  write_run(folder, "1n1g/m_b100_fp32_1.log", 100, 0.3);
  EXPECT_EQ(analyze_logs(folder.path(), {}).notes, std::vector<std::string>{});
  std::string log = log_text({.seconds = 0.31, .images_per_step = 100});
  const std::string fast = "elapse 0.310000 sec Epoch[0] Batch[58]\tSpeed: 322.58";
  ASSERT_NE(log.find(fast), std::string::npos) << log.substr(0, 200);
  log.replace(log.find(fast), fast.size(), "elapse 15.200000 sec Epoch[0] Batch[58]\tSpeed: 6.58");
  folder.write("1n1g/m_b100_fp32_2.log", log);
  const Analysis analysis = analyze_logs(folder.path(), {});
  EXPECT_EQ(analysis.cases.at(0).runs, 2);
  ASSERT_EQ(analysis.notes.size(), 1u);
  EXPECT_EQ(analysis.notes[0],
            "1n1g/m_b100_fp32_2.log stalled: iteration 57 took 15.2 s, 49 times the median of 0.31 s");
}

TEST(Analyze, NamesALogWhoseTrainingDiverged) {
  const ScratchFolder folder;
  const std::string log = log_text({.seconds = 0.31, .images_per_step = 100});
  const std::size_t last = log.rfind("loss "), end = log.find(',', last);
  ASSERT_NE(last, std::string::npos);
  const std::string grown = log.substr(0, last) + "loss 512.25000" + log.substr(end);
  const std::string lost = log.substr(0, last) + "loss nan" + log.substr(end);
  folder.write("1n1g/m_b100_fp32_1.log", log);
  folder.write("1n1g/m_b100_fp32_2.log", grown);
  folder.write("1n1g/m_b100_fp32_3.log", lost);
  const Analysis analysis = analyze_logs(folder.path(), {});
  EXPECT_EQ(analysis.cases.at(0).runs, 3);
  ASSERT_EQ(analysis.notes.size(), 2u);
  EXPECT_TRUE(analysis.notes[0].starts_with("1n1g/m_b100_fp32_2.log: the loss grew from "))
      << analysis.notes[0];
  EXPECT_TRUE(analysis.notes[0].ends_with(" to 512.25: training diverges")) << analysis.notes[0];
  EXPECT_EQ(analysis.notes[1], "1n1g/m_b100_fp32_3.log: the loss became nan: training diverges");
}

TEST(Analyze, LeavesOutWhatIsDamagedAndSaysSo) {
  const ScratchFolder folder;
  write_run(folder, "1n1g/m_b128_fp32_1.log", 128, 0.25);
  folder.write("1n1g/m_b128_fp32_2.log", log_text({.seconds = 0.1, .iterations = 60}));
  folder.write("1n1g/m_b128_fp32_3.log", "");
  write_run(folder, "1n1g/m_b128_fp32_4.log", 128, 0.25);  // a copy of run 1
  write_run(folder, "1n1g/m_bz128_fp32_5.log", 128, 0.1);
  folder.write("1n1g/m_b128_fp32_6.log.part", log_text({.seconds = 0.1}));
  const Analysis analysis = analyze_logs(folder.path(), {});
  EXPECT_EQ(analysis.cases.at(0).runs, 1);
  EXPECT_EQ(analysis.cases.at(0).average, 512);
  EXPECT_EQ(
      flaws(analysis),
      "1n1g/m_b128_fp32_6.log.part unfinished\n1n1g/m_bz128_fp32_5.log wrongly named\n"
      "1n1g/m_b128_fp32_2.log truncated\n1n1g/m_b128_fp32_3.log empty\n1n1g/m_b128_fp32_4.log duplicated\n");
}

TEST(Analyze, SaysWhichPartOfALongerLogCounts) {
  const ScratchFolder folder;
  folder.write("1n1g/r50_b128_fp32_1.log", log_text({.seconds = 0.25, .iterations = 150}));
  const Analysis analysis = analyze_logs(folder.path(), {});
  ASSERT_EQ(analysis.notes.size(), 1u);
  EXPECT_EQ(analysis.notes[0],
            "1n1g: a log has 150 iterations, of which 21 to 120 count; --warmup and --iters choose others");
  EXPECT_TRUE(analyze_logs(folder.path(), {.window = {.iterations = 150, .warmup = 50}}).notes.empty());
}

// The result of a run that wrote logs/<log>, in runs/<name>.
void write_result(const ScratchFolder& folder, const std::string& name, const std::string& log,
                  std::int64_t iterations, std::int64_t warmup, const std::string& status = "ok") {
  RunRecord record = example_run(100);
  record.status = status;
  record.iterations = iterations;
  record.warmup = warmup;
  record.step_seconds.assign(static_cast<std::size_t>(iterations), 0.16);
  record.loss.assign(static_cast<std::size_t>(iterations), 7);
  record.log_files = {"logs/" + log};
  write_run_folder(folder, "runs/" + name, record);
}

constexpr const char* kShortLog = "1n1g/m_b128_fp32_1.log";

// 40 iterations, the first 20 of which are slow.
void write_short_log(const ScratchFolder& folder, const std::string& name = kShortLog) {
  std::vector<std::string> lines = log_lines({.seconds = 0.25, .iterations = 40});
  for (int i = 0; i < 20; ++i) lines[static_cast<std::size_t>(i)] = log_line({.seconds = 0.2}, i);
  folder.write("logs/" + name, joined(lines));
}

TEST(Analyze, TakesARunsOwnLengthFromItsResult) {
  const ScratchFolder folder;
  write_short_log(folder);
  write_result(folder, "a", kShortLog, 40, 10);
  const Analysis analysis = analyze_logs(folder / "logs", {});
  ASSERT_EQ(analysis.cases.size(), 1u);
  EXPECT_EQ(analysis.cases[0].average, 554.67);  // 10 iterations at 640, 20 at 512
  EXPECT_NE(table_text(analysis).find("images/s of iterations 11 to 40 (the runs' own length)"),
            std::string::npos);
  EXPECT_EQ(analyze_logs(folder / "logs", {.window = {{}, 20}}).cases[0].average, 512);
  EXPECT_EQ(analyze_logs(folder / "logs", {.window = {30, 10}}).cases[0].average, 576);
}

TEST(Analyze, RaisesAnOwnWarmUpToWhatTheDialectCanLeaveOut) {
  const ScratchFolder folder;
  write_short_log(folder);
  write_result(folder, "a", kShortLog, 40, 0);
  EXPECT_EQ(analyze_logs(folder / "logs", {.dialect = "paddle_time"}).cases.at(0).window,
            "iterations 2 to 40 (the runs' own length)");
}

TEST(Analyze, ReadsLogsOfTheDefaultLengthOverTheDefaultWindow) {
  const ScratchFolder folder;
  folder.write(std::string("logs/") + kShortLog, log_text({.seconds = 0.25}));
  write_result(folder, "a", kShortLog, 120, 60);
  EXPECT_NE(table_text(analyze_logs(folder / "logs", {})).find("images/s of iterations 21 to 120, read"),
            std::string::npos);
}

TEST(Analyze, TakesNoLengthFromAResultOfAnotherRun) {
  const ScratchFolder folder;
  write_short_log(folder);
  write_result(folder, "a", kShortLog, 50, 10);           // an earlier run of that name
  write_result(folder, "b", kShortLog, 40, 5, "failed");  // which left no log
  write_result(folder, "c", "1n1g/m_b128_fp32_2.log", 40, 5);
  folder.write("runs/d/result.json", "{");
  expect_error(ExitCode::bad_data, {"1 truncated", "40 of the 120"},
               [&] { analyze_logs(folder / "logs", {}); });
}

// Three runs in logs/1n2g, whose results say that the last had the given settings.
std::vector<BadFile> left_out_of_mixed(const nlohmann::ordered_json& settings) {
  const ScratchFolder folder;
  for (int run = 1; run <= 3; ++run) {
    const std::string log = fmt::format("1n2g/m_b8_fp32_{}.log", run);
    write_run(folder, "logs/" + log, 16, 0.1 * run);
    RunRecord record = example_run(100);
    if (run == 3) record.config.update(settings);
    record.log_files = {"logs/" + log};
    write_run_folder(folder, fmt::format("runs/{}", run), record);
  }
  return analyze_logs(folder / "logs", {}).bad;
}

TEST(Analyze, TellsRunsOfOtherSettingsApartByTheirResults) {
  EXPECT_TRUE(left_out_of_mixed(nlohmann::ordered_json::object()).empty());
  for (const auto& [settings, own] :
       {std::pair(nlohmann::ordered_json{{"bucket_mb", 4.0}}, "--bucket-mb 4 --threads 1"),
        std::pair(nlohmann::ordered_json{{"overlap", false}}, "--overlap false --threads 1"),
        std::pair(nlohmann::ordered_json{{"threads", 2}}, "--threads 2")}) {
    const std::vector<BadFile> bad = left_out_of_mixed(settings);
    ASSERT_EQ(bad.size(), 1u) << settings;
    EXPECT_EQ(bad[0].path, "1n2g/m_b8_fp32_3.log");
    EXPECT_EQ(bad[0].defect.reason,
              fmt::format("it is b8_fp32 with {} among runs of b8_fp32 with --threads 1", own));
  }
}

TEST(Analyze, ALogThatNoResultNamesCountsAsItsNeighbours) {
  const ScratchFolder folder;
  write_run(folder, "logs/1n2g/m_b8_fp32_1.log", 16, 0.1);
  write_run(folder, "logs/1n2g/m_b8_fp32_2.log", 16, 0.2);
  RunRecord record = example_run(100);
  record.log_files = {"logs/1n2g/m_b8_fp32_2.log"};
  write_run_folder(folder, "runs/a", record);
  EXPECT_EQ(analyze_logs(folder / "logs", {}).cases.at(0).runs, 2);
}

TEST(Analyze, TellsTheOptionsThatReadAShortLog) {
  const auto reason = [](int iterations, const AnalyzeOptions& options) {
    const ScratchFolder folder;
    folder.write(kShortLog, log_text({.seconds = 0.25, .iterations = iterations}));
    folder.write("1n1g/m_b128_fp32_2.log", log_text({.seconds = 0.25}));
    return analyze_logs(folder.path(), options).bad.at(0).defect.reason;
  };
  EXPECT_EQ(reason(40, {}),
            "it has 40 of the 120 lines that --iters 120 wants; --iters 40 --warmup 20 read it");
  EXPECT_NE(reason(10, {}).find("; --iters 10 --warmup 5 read it"), std::string::npos);
  EXPECT_NE(reason(1, {.dialect = "paddle_time"}).find("1 of the 120 lines that --iters 120 wants"),
            std::string::npos);
  EXPECT_EQ(reason(1, {.dialect = "paddle_time"}).find("read it"), std::string::npos);
}

TEST(Analyze, CountsRunsOfAnotherLengthNotAmongTheOthers) {
  const ScratchFolder folder;
  for (const int run : {1, 2, 3}) {
    const std::string log = "1n1g/m_b128_fp32_" + std::to_string(run) + ".log";
    folder.write("logs/" + log, log_text({.seconds = 0.25 + 0.01 * run, .iterations = run == 3 ? 60 : 40}));
    write_result(folder, std::to_string(run), log, run == 3 ? 60 : 40, 10);
  }
  const Analysis analysis = analyze_logs(folder / "logs", {});
  EXPECT_EQ(analysis.cases.at(0).runs, 2);
  ASSERT_EQ(flaws(analysis), "1n1g/m_b128_fp32_3.log mixed\n");
  EXPECT_EQ(
      analysis.bad[0].defect.reason,
      "it is b128_fp32 of 60 iterations with 10 of warm-up among runs of b128_fp32 of 40 iterations with "
      "10 of warm-up");
}

TEST(Analyze, KeepsTheConfigurationWithMostRuns) {
  const ScratchFolder folder;
  write_run(folder, "1n1g/m_b64_fp32_1.log", 64, 0.25);
  write_run(folder, "1n1g/m_b128_fp32_2.log", 128, 0.25);
  write_run(folder, "1n1g/m_b128_fp32_3.log", 128, 0.26);
  write_run(folder, "1n1g/m_b128_fp16_4.log", 128, 0.1);
  const Analysis analysis = analyze_logs(folder.path(), {});
  ASSERT_EQ(analysis.cases.size(), 1u);
  EXPECT_EQ(analysis.cases[0].runs, 2);
  EXPECT_EQ(analysis.cases[0].precision, "fp32");
  EXPECT_EQ(flaws(analysis), "1n1g/m_b128_fp16_4.log mixed\n1n1g/m_b64_fp32_1.log mixed\n");
}

TEST(Analyze, LetsTheWholeFolderDecideBetweenEqualConfigurations) {
  const ScratchFolder folder;
  write_run(folder, "1n1g/m_b64_fp32_1.log", 64, 0.25);
  write_run(folder, "1n2g/m_b64_fp32_1.log", 128, 0.25);
  write_run(folder, "1n2g/m_b128_fp32_2.log", 256, 0.25);
  const Analysis analysis = analyze_logs(folder.path(), {});
  EXPECT_EQ(flaws(analysis), "1n2g/m_b128_fp32_2.log mixed\n");
  EXPECT_EQ(analysis.cases.size(), 2u);
}

TEST(Analyze, TakesNeitherOfTwoEqualConfigurations) {
  const ScratchFolder folder;
  write_run(folder, "1n1g/m_b64_fp32_1.log", 64, 0.25);
  write_run(folder, "1n1g/m_b128_fp32_2.log", 128, 0.25);
  expect_error(ExitCode::bad_data, {"2 mixed"}, [&] { analyze_logs(folder.path(), {}); });
}

TEST(Analyze, GivesNoSpeedupWithoutItsOneDeviceRun) {
  const ScratchFolder folder;
  write_run(folder, "1n1g/m_b64_fp32_1.log", 64, 0.25);
  write_run(folder, "1n2g/m_b128_fp32_1.log", 256, 0.25);
  const Analysis analysis = analyze_logs(folder.path(), {});
  EXPECT_TRUE(analysis.dictionary["m"]["1n2g"]["speedup"].is_null());
  EXPECT_EQ(analysis.dictionary["m"]["1n2g"]["median_speed"], 1024);
  ASSERT_EQ(analysis.notes.size(), 1u);
  EXPECT_NE(analysis.notes[0].find("m_b128_fp32"), std::string::npos);
}

TEST(Analyze, KeepsModelsApart) {
  const ScratchFolder folder;
  write_run(folder, "1n1g/m_b128_fp32_1.log", 128, 0.25);
  write_run(folder, "1n1g/other_b128_fp32_1.log", 128, 0.5);
  const Analysis analysis = analyze_logs(folder.path(), {});
  EXPECT_EQ(analysis.dictionary["m"]["1n1g"]["average_speed"], 512);
  EXPECT_EQ(analysis.dictionary["other"]["1n1g"]["average_speed"], 256);
}

TEST(Analyze, RefusesFoldersWithoutAUsableLog) {
  const ScratchFolder folder;
  expect_error(ExitCode::bad_data, {"no usable log", "<N>n<G>g"}, [&] { analyze_logs(folder.path(), {}); });
  folder.write("1n1g/m_b128_fp32_1.log", "");
  expect_error(ExitCode::bad_data, {"1 empty", "m_b128_fp32_1.log"},
               [&] { analyze_logs(folder.path(), {}); });
}

TEST(Analyze, RefusesImpossibleWindowsAndUnknownDialects) {
  expect_error(ExitCode::usage, {"option --warmup: 120"}, [] {
    analyze_logs(kData / "tree", {.window = {120, 120}});
  });
  expect_error(ExitCode::usage, {"option --warmup: 0", "paddle_time"}, [] {
    analyze_logs(kData / "tree", {.dialect = "paddle_time", .window = {120, 0}});
  });
  expect_error(ExitCode::usage, {"--dialect", "tf", "mxnet_rn50v1b"},
               [] { analyze_logs(kData / "tree", {.dialect = "tf"}); });
}

TEST(Analyze, RefusesWindowsThatCutLinesApart) {
  const auto analyze = [](const char* dialect, WindowChoice window) {
    return [=] { analyze_logs(kData / dialect, {.dialect = dialect, .window = window}); };
  };
  expect_error(ExitCode::usage, {"option --warmup: 50", "multiple of 20", "mxnet_arcface", "give 40"},
               analyze("mxnet_arcface", {150, 50}));
  expect_error(ExitCode::usage, {"option --iters: 39", "mxnet_arcface", "at least 40"},
               analyze("mxnet_arcface", {39, 20}));
  expect_error(ExitCode::usage, {"option --warmup: 5", "multiple of 10", "plsc"}, analyze("plsc", {{}, 5}));
}

TEST(Analyze, EachDialectHasItsOwnWindow) {
  const auto window_of = [](const char* dialect) {
    return analyze_logs(kData / dialect, {.dialect = dialect}).window;
  };
  EXPECT_EQ(window_of("mxnet_arcface"), "iterations 21 to 120");
  EXPECT_EQ(window_of("mxnet_partial_fc"), "iterations 21 to the end of each log");
  EXPECT_EQ(window_of("oneflow_face"), "lines 20 to 120 after iteration 5");
  EXPECT_EQ(window_of("plsc"), "iterations 51 to 150");
  EXPECT_EQ(analyze_logs(kData / "plsc", {.dialect = "plsc", .window = {{}, 20}}).window,
            "iterations 21 to 150");
}

TEST(Analyze, SaysWhatPlscsScriptMakesOfALogOfEightRanks) {
  const Analysis analysis = analyze_logs(kData / "plsc", {});
  ASSERT_EQ(analysis.notes.size(), 1u);
  EXPECT_EQ(analysis.notes[0],
            "1n8g: 8 ranks have written into each log, and the published slice [5:15] takes lines of batches "
            "0 to 10; these figures are of batches 50 to 140");
}

TEST(DictionaryText, PrintsNumbersAsPython) {
  nlohmann::ordered_json json{{"a", 1.0},          {"b", 396.76}, {"c", 0},
                              {"d", std::nan("")}, {"e", 1e-5},   {"f", nullptr}};
  EXPECT_EQ(dictionary_text(json), R"({"a": 1.0, "b": 396.76, "c": 0, "d": NaN, "e": 1e-05, "f": null})");
}

}  // namespace
}  // namespace plumb
