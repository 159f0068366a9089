#include "results/compare/samples.h"

#include <gtest/gtest.h>

#include <regex>

#include "tests/bench/expect_error.h"
#include "tests/results/run_folder.h"
#include "tests/results/synthetic_log.h"

namespace plumb {
namespace {

// "resnet50 8: 30 32"
std::string figures_text(const LoadedSamples& loaded) {
  std::string text;
  for (const Sample& sample : loaded.samples) {
    text += sample.configuration.framework + " " + sample.configuration.model + " " +
            std::to_string(sample.configuration.batch_per_device) + ":";
    for (const double figure : sample.figures()) text += " " + std::to_string(std::llround(figure));
    text += "\n";
  }
  return text;
}

std::string refusal(const std::string& path, const AnalyzeOptions& options = {}) {
  std::string sentence;
  expect_error(ExitCode::bad_data, {}, [&] {
    try {
      load_samples(path, options);
    } catch (const Error& error) {
      sentence = error.what();
      throw;
    }
  });
  return sentence;
}

void write_log(const ScratchFolder& folder, const std::string& name, double seconds,
               std::int64_t images_per_step = 128) {
  folder.write(name, log_text({.seconds = seconds, .images_per_step = images_per_step}));
}

TEST(Samples, OfAFolderOfRunFoldersAreItsRunsByConfiguration) {
  const ScratchFolder runs;
  RunRecord other = example_run(50);
  other.batch_per_device = 16;
  write_run_folder(runs, "a", example_run(30));
  write_run_folder(runs, "b", other);
  write_run_folder(runs, "c", example_run(32));
  runs.write("notes.txt", "not a run");
  std::filesystem::create_directory(runs / "pictures");
  const LoadedSamples loaded = load_samples(runs.path());
  EXPECT_EQ(figures_text(loaded), "Plumbline resnet50 8: 30 32\nPlumbline resnet50 16: 50\n");
  EXPECT_TRUE(loaded.bad.empty());
  EXPECT_EQ(loaded.samples[0].runs[0].run_folder, runs / "a");
  EXPECT_EQ(loaded.samples[0].runs[0].record->step_seconds.size(), 120u);
}

TEST(Samples, OfOneRunAreReadFromItsFolderAndFromItsFile) {
  const ScratchFolder runs;
  const auto folder = write_run_folder(runs, "a", example_run(30));
  EXPECT_EQ(figures_text(load_samples(folder)), "Plumbline resnet50 8: 30\n");
  EXPECT_EQ(figures_text(load_samples(folder / "result.json")), "Plumbline resnet50 8: 30\n");
}

// As PaddlePaddle writes it: Plumbline's lines go on behind "sec".
std::string paddle_log(double seconds, std::int64_t images_per_step) {
  const std::string own = log_text({.seconds = seconds, .images_per_step = images_per_step});
  return std::regex_replace(own, std::regex(" sec Epoch.*"), " sec");
}

TEST(Samples, OfLogsHaveTheFrameworkAndTheModelOfTheirDialect) {
  const ScratchFolder logs;
  logs.write("1n1g/r50_b128_fp32_1.log", paddle_log(0.5, 128));
  logs.write("1n1g/r50_b128_fp32_2.log", paddle_log(0.25, 128));
  logs.write("2n4g/rn50_b128_fp32_1.log", paddle_log(0.125, 1024));
  const LoadedSamples loaded = load_samples(logs.path(), {.dialect = "paddle_time"});
  EXPECT_EQ(figures_text(loaded), "PaddlePaddle resnet50 128: 256 512\nPaddlePaddle resnet50 128: 8192\n");
  EXPECT_TRUE(loaded.samples[0].runs[0].run_folder.empty());
  EXPECT_FALSE(loaded.samples[0].runs[0].record);
}

TEST(Samples, ALogNamedAfterAModelThatItsDialectCannotHaveIsLeftOut) {
  const ScratchFolder logs;
  logs.write("1n1g/r50_b128_fp32_1.log", paddle_log(0.5, 128));
  logs.write("1n1g/r100_b128_fp32_1.log", paddle_log(0.25, 128));
  const LoadedSamples loaded = load_samples(logs.path(), {.dialect = "paddle_time"});
  EXPECT_EQ(loaded.samples.size(), 1u);
  ASSERT_EQ(loaded.bad.size(), 1u);
  EXPECT_EQ(loaded.bad[0].defect.reason, "it is named after r100, but logs of paddle_time are of resnet50");
}

TEST(Samples, OfPlumblinesOwnLogsAreKnownByTheirLinesAlone) {
  const ScratchFolder logs;
  write_log(logs, "1n1g/r50_b128_fp32_1.log", 0.5);
  EXPECT_EQ(figures_text(load_samples(logs.path())), "Plumbline r50 128: 256\n");
}

TEST(Samples, OfLogsReadOverTheirOwnLengthNameItAsResultsDo) {
  const ScratchFolder scratch;
  scratch.write("logs/1n2g/resnet50_b8_fp32_1.log",
                log_text({.seconds = 0.16, .images_per_step = 16, .iterations = 40}));
  RunRecord record = example_run(100);
  record.iterations = 40;
  record.warmup = 10;
  record.step_seconds.resize(40);
  record.loss.resize(40);
  record.log_files = {"logs/1n2g/resnet50_b8_fp32_1.log"};
  write_run_folder(scratch, "runs/a", record);
  const LoadedSamples logs = load_samples(scratch / "logs");
  ASSERT_EQ(logs.samples.size(), 1u);
  EXPECT_EQ(logs.samples[0].configuration.settings,
            load_samples(scratch / "runs").samples[0].configuration.settings);
  EXPECT_EQ(logs.samples[0].configuration.settings.at("iterations"), "40, 10 of them warm-up");
}

TEST(Samples, OfPlumblinesOwnLogsSaySo) {
  const ScratchFolder logs;
  logs.write("1n1g/.plumbline-case",
             R"({"model":"r50","image_size":112,"data":"synthetic","head":"--head pfc --classes 85742 )"
             R"(--embedding 512 --sample-rate 0.1","settings":{"bucket_mb":"4","threads":"2"}})");
  write_log(logs, "1n1g/r50_b128_fp32_1.log", 0.5);
  const Configuration own = load_samples(logs.path()).samples.at(0).configuration;
  EXPECT_EQ(own.framework, "Plumbline");
  EXPECT_EQ(own.data, "synthetic");
  EXPECT_EQ(own.image_size, 112);
  EXPECT_EQ(own.head, "pfc 0.1");
  EXPECT_EQ(own.classes, 85742);
  EXPECT_EQ(own.settings, (std::map<std::string, std::string>{{"bucket_mb", "4"}}));
}

TEST(Samples, OfAPeersLogsHaveItsFramework) {
  const ScratchFolder logs;
  logs.write("1n1g/.plumbline-case",
             R"({"model":"resnet50","image_size":224,"data":"synthetic","framework":"PyTorch compiled"})");
  write_log(logs, "1n1g/resnet50_b128_fp32_1.log", 0.5);
  const Configuration peers = load_samples(logs.path()).samples.at(0).configuration;
  EXPECT_EQ(peers.framework, "PyTorch compiled");
  EXPECT_EQ(peers.image_size, 224);
}

TEST(Samples, OfLogsBesideACaseFileLargerThanAnyAreRefused) {
  const ScratchFolder logs;
  write_log(logs, "1n1g/resnet50_b128_fp32_1.log", 0.5);
  logs.write_sparse("1n1g/.plumbline-case");
  const std::string sentence = refusal(logs.path());
  for (const char* words : {"resnet50_b128_fp32_1.log",
                            ".plumbline-case' has 1099511627776 bytes, more than the 256 MiB", "remove it"})
    EXPECT_NE(sentence.find(words), std::string::npos) << words << " is missing in " << sentence;
}

TEST(Samples, KeepEveryConfigurationOfAFolderOfLogs) {
  const ScratchFolder logs;
  write_log(logs, "1n1g/rn50_b128_fp32_1.log", 0.5);
  write_log(logs, "1n1g/rn50_b64_fp32_1.log", 0.25, 64);
  EXPECT_EQ(load_samples(logs.path()).samples.size(), 2u);
}

TEST(Samples, OfSeveralPathsJoinAndCountARunOnce) {
  const ScratchFolder runs;
  const auto a = write_run_folder(runs, "first/a", example_run(30));
  write_run_folder(runs, "second/b", example_run(32));
  const LoadedSamples loaded =
      load_samples(std::vector<std::string>{(runs / "first").string(), (runs / "second").string(), a.string(),
                                            (runs / "first/../first/a/result.json").string()});
  EXPECT_EQ(figures_text(loaded), "Plumbline resnet50 8: 30 32\n");
  EXPECT_TRUE(loaded.bad.empty());
}

TEST(Samples, LeaveACopyOfARunOutAndNameIt) {
  const ScratchFolder runs;
  write_run_folder(runs, "a", example_run(30));
  write_run_folder(runs, "b", example_run(30));
  const LoadedSamples loaded = load_samples(runs.path());
  EXPECT_EQ(figures_text(loaded), "Plumbline resnet50 8: 30\n");
  ASSERT_EQ(loaded.bad.size(), 1u);
  EXPECT_EQ(loaded.bad[0].path, (runs / "b").string());
  EXPECT_EQ(loaded.bad[0].defect.reason, "it is a copy of " + (runs / "a").string());
}

TEST(Samples, LeaveOutWhatIsNoResultAndSayWhy) {
  const ScratchFolder runs;
  write_run_folder(runs, "good", example_run(30));
  RunRecord failed = example_run(31);
  failed.status = "failed";
  failed.failure = "option --bs: too large";
  write_run_folder(runs, "failed", failed);
  RunRecord zero = example_run(32);
  zero.images_per_second.mean = 0;
  write_run_folder(runs, "zero", zero);
  auto newer = to_json(example_run(33));
  newer["schema"] = "plumbline.result/12";
  runs.write("newer/result.json", newer.dump());
  runs.write("junk/result.json", std::string("\177ELF\0\1\2\xff", 8));
  runs.write("torn/result.json", to_json(example_run(34)).dump().substr(0, 200));
  std::filesystem::create_directories(runs / "folder/result.json");
  const LoadedSamples loaded = load_samples(runs.path());
  EXPECT_EQ(figures_text(loaded), "Plumbline resnet50 8: 30\n");
  std::string reasons;
  for (const BadFile& bad : loaded.bad)
    reasons += std::filesystem::path(bad.path).filename().string() + ": " + bad.defect.reason + "\n";
  for (const char* wanted :
       {"failed: the run failed: option --bs: too large", "zero: its images_per_second has a mean",
        "plumbline.result/12, newer than plumbline.result/1", "update plumbline",
        "junk/result.json' is no result.json: it holds no JSON object", "torn/result.json' is no result.json",
        "folder/result.json' is no regular file; name a result.json"})
    EXPECT_NE(reasons.find(wanted), std::string::npos) << wanted << "\nin\n" << reasons;
  EXPECT_EQ(loaded.bad.size(), 6u);
}

TEST(Samples, AreRefusedWhereNothingIsUsable) {
  const ScratchFolder folder;
  EXPECT_NE(refusal(folder.path()).find("holds neither run folders"), std::string::npos);
  EXPECT_NE(refusal(folder.path() + "/none").find("can't be found"), std::string::npos);
  const auto junk = folder.write("junk.bin", std::string(4096, '\xfe'));
  EXPECT_NE(refusal(junk).find("it holds no JSON object"), std::string::npos);
  std::filesystem::create_directory(folder / "1n1g");
  EXPECT_NE(refusal(folder.path()).find("holds nothing usable; name a folder"), std::string::npos);
  folder.write("1n1g/rn50_b128_fp32_1.log", "hello\n");
  EXPECT_NE(refusal(folder.path()).find("(1 left out)"), std::string::npos);
  EXPECT_NE(refusal((folder / "1n1g").string()).find("the folder around it"), std::string::npos);
  EXPECT_NE(refusal((folder / "1n1g/rn50_b128_fp32_1.log").string()).find("is one log; name the folder"),
            std::string::npos);
  EXPECT_NE(refusal("/dev/null").find("no regular file"), std::string::npos);
}

TEST(Samples, OfAFailedRunAloneAreRefusedWithItsFailure) {
  const ScratchFolder runs;
  RunRecord failed = example_run(31);
  failed.status = "failed";
  failed.failure = "rank 3 is gone";
  EXPECT_NE(refusal(write_run_folder(runs, "a", failed)).find("the run failed: rank 3 is gone"),
            std::string::npos);
  std::filesystem::create_directory_symlink(runs / "a", runs / "latest");
  EXPECT_NE(refusal(runs.path()).find("the run failed: rank 3 is gone"), std::string::npos);
}

TEST(Samples, OfAFolderUpToTwoLevelsAboveAreReadAndSayFromWhere) {
  const ScratchFolder folder;
  write_run_folder(folder, "h200/runs/a", example_run(30));
  write_run_folder(folder, "h100/b", example_run(32));
  write_log(folder, "logs/1n1g/resnet50_b128_fp32_1.log", 0.5);
  folder.write("unknown/1n1g/resnet50_b128_fp32_1.log", "no dialect writes this\n");
  const LoadedSamples loaded = load_samples(folder.path());
  EXPECT_EQ(figures_text(loaded), "Plumbline resnet50 8: 32 30\nPlumbline resnet50 128: 256\n");
  ASSERT_EQ(loaded.notes.size(), 1u);
  EXPECT_EQ(loaded.notes[0], "'" + folder.path() + "' holds no runs itself; read 4 folders below it: " +
                                 (folder / "h100").string() + ", " + (folder / "h200/runs").string() + ", " +
                                 (folder / "logs").string() + ", " + (folder / "unknown").string());
  ASSERT_EQ(loaded.bad.size(), 1u);
  EXPECT_EQ(loaded.bad[0].path, folder / "unknown/1n1g/resnet50_b128_fp32_1.log");
}

TEST(Samples, OfAFolderThreeLevelsAboveAreRefused) {
  const ScratchFolder folder;
  write_run_folder(folder, "one/two/three/a", example_run(30));
  EXPECT_NE(refusal(folder.path()).find("nor do those up to two levels below"), std::string::npos);
}

TEST(Samples, LeaveLogsBesideRunFoldersOutAndSaySo) {
  const ScratchFolder folder;
  write_run_folder(folder, "a", example_run(30));
  write_log(folder, "1n1g/rn50_b128_fp32_1.log", 0.5);
  const LoadedSamples loaded = load_samples(folder.path());
  EXPECT_EQ(figures_text(loaded), "Plumbline resnet50 8: 30\n");
  ASSERT_EQ(loaded.bad.size(), 1u);
  EXPECT_NE(loaded.bad[0].defect.reason.find("beside run folders"), std::string::npos);
}

TEST(Samples, OfASweepAreItsFinishedRunsAndFailuresAreNamed) {
  const ScratchFolder sweep;
  sweep.write("journal.jsonl", "{}\n");
  write_run_folder(sweep, "runs/a_1n2g_1", example_run(30));
  write_log(sweep, "logs/a/1n2g/resnet50_b128_fp32_1.log", 1.0);
  RunRecord failed = example_run(0);
  failed.status = "failed";
  failed.failure = "out of memory";
  write_run_folder(sweep, "failed/b_1n2g_1_attempt2/x", failed);
  write_run_folder(sweep, "failed/a_1n2g_1_attempt1/x", failed);
  sweep.write("failed/c_1n2g_1_attempt1/log.part", "");
  const LoadedSamples loaded = load_samples(sweep.path());
  EXPECT_EQ(figures_text(loaded), "Plumbline resnet50 8: 30\n");
  ASSERT_EQ(loaded.bad.size(), 2u) << "a run that succeeded later isn't one";
  EXPECT_NE(loaded.bad[0].defect.reason.find("out of memory"), std::string::npos);
  EXPECT_NE(loaded.bad[1].defect.reason.find("output/c_1n2g_1_attempt1.txt"), std::string::npos);
}

TEST(Samples, OfAnotherDialectAreRefused) {
  const ScratchFolder logs;
  write_log(logs, "1n1g/rn50_b128_fp32_1.log", 0.5);
  EXPECT_NE(refusal(logs.path(), {.dialect = "plsc"}).find("holds nothing usable (1 left out)"),
            std::string::npos);
}

}  // namespace
}  // namespace plumb
