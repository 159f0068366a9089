#include "bench/output/log_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <regex>

#include "results/analysis/configuration.h"
#include "tests/bench/expect_error.h"
#include "tests/bench/output/log_lines.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

using std::chrono::system_clock;

TEST(LogWriter, LineIsTheSpecifiedOneToTheByte) {
  const InTimeZone utc("UTC");
  // 2025-01-02 23:59:53.000 UTC
  const system_clock::time_point start = system_clock::from_time_t(1735862393);
  LogLine line = line_of(1);
  line.end_seconds = 0.6575;
  EXPECT_EQ(
      format_log_line(line, 128, start),
      "2025-01-02 23:59:53,657-INFO: [Pass 0, train batch 1] \tloss 6.99900, acc1 0.00000, acc5 0.00000, "
      "lr 0.10000, elapse 0.320803 sec Epoch[0] Batch[2]\tSpeed: 399.00 samples/sec\n");
  line.end_seconds = 7.0;
  EXPECT_EQ(format_log_line(line, 128, start).substr(0, 23), "2025-01-03 00:00:00,000");
}

TEST(LogWriter, StampsDoNotJumpWithDaylightSaving) {
  // Clocks go back one hour at 2024-10-27 01:00 UTC. A run that begins a second before ends two seconds
  // later.
  const InTimeZone berlin("CET-1CEST,M3.5.0,M10.5.0/3");
  const system_clock::time_point start = system_clock::from_time_t(1729990799);
  LogLine line = line_of(0);
  line.end_seconds = 0;
  EXPECT_EQ(format_log_line(line, 1, start).substr(0, 23), "2024-10-27 02:59:59,000");
  line.end_seconds = 2;
  EXPECT_EQ(format_log_line(line, 1, start).substr(0, 23), "2024-10-27 03:00:01,000");
}

TEST(LogWriter, EveryDialectsRegularExpressionReadsIt) {
  ScratchFolder folder;
  const LogCase log_case = {
      .model = "resnet50", .precision = "fp32", .batch_per_device = 128, .nodes = 2, .devices_per_node = 8};
  LogWriter log(folder.path(), log_case, {});
  write_lines(log, 120);
  log.finish();
  EXPECT_EQ(log.path(), folder.path() + "/2n8g/resnet50_b128_fp32_1.log");

  const std::regex paddle(".*elapse (.*?) sec"), mxnet("Speed: (\\d+.\\d+) samples/sec"),
      stamp("^(\\d{4}-\\d{2}-\\d{2} \\d{1,2}:\\d{1,2}:\\d{1,2},\\d{3})");
  int paddle_lines = 0, mxnet_lines = 0, first = 0, last = 0;
  for (const std::string& line : lines_of(read_text(log.path()))) {
    std::smatch match;
    paddle_lines += line.find("elapse") != std::string::npos;
    ASSERT_TRUE(std::regex_search(line, match, paddle)) << line;
    EXPECT_NEAR(std::stod(match[1]), 0.320803, 1e-9);
    mxnet_lines += line.find("Epoch[0] Batch[") != std::string::npos;
    ASSERT_TRUE(std::regex_search(line, match, mxnet)) << line;
    EXPECT_NEAR(std::stod(match[1]), 128 * 16 / 0.320803, 0.005);
    ASSERT_TRUE(std::regex_search(line, match, stamp)) << line;
    first += line.find("train batch 19]") != std::string::npos;
    last += line.find("train batch 119]") != std::string::npos;
  }
  EXPECT_EQ(paddle_lines, 120);
  EXPECT_EQ(mxnet_lines, 120);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(last, 1);
}

TEST(LogWriter, AnUnfinishedRunNeverHasTheNameThatAnalyzersRead) {
  ScratchFolder folder;
  {
    LogWriter log(folder.path(), kCase, {});
    write_lines(log, 3);
    EXPECT_EQ(folder.list("1n1g"), std::vector<std::string>{"resnet50_b128_fp32_1.log.part"});
  }
  EXPECT_EQ(folder.list("1n1g"), std::vector<std::string>{"resnet50_b128_fp32_1.log.part"});
  EXPECT_EQ(lines_of(read_text(folder.path() + "/1n1g/resnet50_b128_fp32_1.log.part")).size(), 3U);
}

TEST(LogWriter, SetUpThatFailsLeavesNoEmptyLog) {
  ScratchFolder folder;
  { LogWriter log(folder.path(), kCase, {}); }
  EXPECT_TRUE(folder.list("1n1g").empty());
}

TEST(LogWriter, TakesTheNextFreeNumberAndNeverAnExistingOne) {
  ScratchFolder folder;
  const auto write_run = [&](std::optional<int> run) {
    LogWriter log(folder.path(), kCase, run);
    write_lines(log, 1);
    log.finish();
    return log.run();
  };
  EXPECT_EQ(write_run({}), 1);
  EXPECT_EQ(write_run({}), 2);
  EXPECT_EQ(write_run(5), 5);
  EXPECT_EQ(write_run({}), 3);
  expect_error(ExitCode::cannot_create,
               {"resnet50_b128_fp32_5.log", "exists already, finished or not", "--run 5: "},
               [&] { write_run(5); });
  LogWriter running(folder.path(), kCase, 7);
  expect_error(ExitCode::cannot_create, {"--run 7: "}, [&] { write_run(7); });
}

TEST(LogWriter, RenamesWithoutReplacing) {
  ScratchFolder folder;
  LogWriter log(folder.path(), kCase, {});
  write_lines(log, 1);
  write_text(log.path(), "somebody else's");
  expect_error(ExitCode::cannot_create, {"cannot rename", log.path()}, [&] { log.finish(); });
  EXPECT_EQ(read_text(log.path()), "somebody else's");
}

TEST(LogWriter, NeitherRenamesNorRemovesTheLogOfAnotherRun) {
  ScratchFolder folder;
  LogWriter robbed(folder.path(), kCase, {});
  write_lines(robbed, 1);
  std::filesystem::remove(robbed.path() + ".part");
  LogWriter other(folder.path(), kCase, {});
  EXPECT_EQ(other.path(), robbed.path());
  expect_error(ExitCode::io_error, {robbed.path() + ".part", "was removed, moved or replaced"},
               [&] { robbed.finish(); });
  write_lines(other, 3);
  { LogWriter idle = std::move(robbed); }
  other.finish();
  EXPECT_EQ(lines_of(read_text(other.path())).size(), 3U);
}

TEST(LogWriter, AFolderThatVanishesIsNoticedAtTheNextLine) {
  ScratchFolder folder;
  const std::string logs = folder.path() + "/logs";
  for (const bool is_moved : {false, true}) {
    LogWriter log(logs, kCase, {});
    write_lines(log, 1);
    if (is_moved)
      std::filesystem::rename(logs, folder.path() + "/elsewhere");
    else
      std::filesystem::remove_all(logs);
    expect_error(ExitCode::io_error, {log.path() + ".part", "was removed, moved or replaced"},
                 [&] { write_lines(log, 1); });
  }
}

// A folder of runs as somebody else may have left it.
struct CaseFolderOfOthers : ScratchFolder {
  CaseFolderOfOthers() { std::filesystem::create_directory(cases); }
  explicit CaseFolderOfOthers(const std::string& case_text,
                              const std::string& log = "resnet50_b128_fp32_1.log")
      : CaseFolderOfOthers() {
    write_text(cases + "/" + log, "");
    if (!case_text.empty()) write_text(case_file, case_text);
  }
  const std::string cases = path() + "/1n1g", case_file = cases + "/.plumbline-case";
};

void expect_refused(const std::string& folder, const std::vector<std::string>& words,
                    const LogCase& log_case = kCase) {
  expect_error(ExitCode::cannot_create, words, [&] { LogWriter(folder, log_case, {}); });
}

TEST(LogWriter, ALinkThatLeadsNowhereTakesItsName) {
  const CaseFolderOfOthers folder;
  std::filesystem::create_symlink("/nowhere/at/all", folder.cases + "/resnet50_b128_fp32_1.log");
  EXPECT_EQ(LogWriter(folder.path(), kCase, {}).run(), 2);
}

TEST(LogWriter, ACaseFileThatIsALinkIsReplacedAndNotFollowed) {
  const CaseFolderOfOthers folder;
  write_text(folder.path() + "/precious", "{}");
  std::filesystem::create_symlink(folder.path() + "/precious", folder.case_file);
  EXPECT_EQ(LogWriter(folder.path(), kCase, {}).run(), 1);
  EXPECT_EQ(read_text(folder.path() + "/precious"), "{}");
}

TEST(LogWriter, RefusesAFolderThatIsAFileOrCannotBe) {
  const ScratchFolder folder;
  write_text(folder.path() + "/logs", "");
  expect_refused(folder.path() + "/logs", {folder.path() + "/logs", "Not a directory", "--log-dir"});
  std::filesystem::create_directory(folder.path() + "/other");
  write_text(folder.path() + "/other/1n1g", "");
  expect_refused(folder.path() + "/other", {"other/1n1g", "--log-dir"});
  expect_refused("/proc/plumbline", {"--log-dir /proc/plumbline: cannot create the folder"});
}

void write_whole_log(const ScratchFolder& folder, const LogCase& log_case) {
  LogWriter log(folder.path(), log_case, {});
  write_lines(log, 3);
  log.finish();
}

TEST(LogWriter, RefusesAFolderOfAnotherConfiguration) {
  const ScratchFolder folder;
  write_whole_log(folder, kCase);
  const auto expect_theirs = [&](auto member, const auto& value, const std::string& theirs) {
    LogCase other = kCase;
    other.*member = value;
    expect_refused(folder.path(),
                   {"--log-dir " + folder.path() + ": " + folder.path() +
                        "/1n1g holds resnet50_b128_fp32_1.log of another configuration (",
                    theirs, "; pass another --log-dir"},
                   other);
  };
  expect_theirs(&LogCase::model, "r50", "model \"resnet50\", not \"r50\"");
  expect_theirs(&LogCase::batch_per_device, 64, "batch_per_device 128, not 64");
  expect_theirs(&LogCase::precision, "fp16", "precision \"fp32\", not \"fp16\"");
  expect_theirs(&LogCase::image_size, 64, "image_size 224, not 64");
  expect_theirs(&LogCase::data, "images", ", not \"images\"");
  expect_theirs(&LogCase::data, "batch", ", not \"batch\"");
  EXPECT_EQ(folder.list("1n1g"), std::vector<std::string>{"resnet50_b128_fp32_1.log"});
}

LogCase case_with(const std::map<std::string, std::string>& settings) {
  LogCase log_case = kCase;
  log_case.settings = settings;
  return log_case;
}

TEST(LogWriter, RunsOfOtherSettingsAreAnotherConfiguration) {
  const ScratchFolder folder;
  const LogCase usual = case_with({{"threads", "1"}});
  write_whole_log(folder, usual);
  EXPECT_EQ(LogWriter(folder.path(), usual, {}).run(), 2);
  for (const std::map<std::string, std::string>& settings :
       {std::map<std::string, std::string>{{"threads", "2"}},
        {{"bucket_mb", "4"}, {"threads", "1"}},
        {{"overlap", "false"}, {"threads", "1"}},
        {{"comm", "mpi"}, {"threads", "1"}}})
    expect_refused(folder.path(), {"settings {\"threads\":\"1\"}", nlohmann::json(settings).dump()},
                   case_with(settings));
}

TEST(LogWriter, RefusesLogsOfAnUnknownConfiguration) {
  for (const char* junk : {"junk", "{}", "[1]", "{\"model\":1}"})
    expect_refused(CaseFolderOfOthers(junk).path(),
                   {"resnet50_b128_fp32_1.log of another configuration", "--log-dir"});
  expect_refused(CaseFolderOfOthers("", "rn50_b128_fp32_1.log").path(), {"rn50_b128_fp32_1.log"});
  // Another framework's, with ours.
  const CaseFolderOfOthers folder;
  { LogWriter(folder.path(), kCase, {}); }
  const std::string own = read_text(folder.case_file);
  write_text(folder.cases + "/resnet50_b128_fp32_7.log", "");
  EXPECT_EQ(LogWriter(folder.path(), kCase, {}).run(), 1);
  write_text(folder.case_file, own.substr(0, own.rfind('}')) + R"(,"framework":"PyTorch"})" + "\n");
  expect_refused(folder.path(), {"framework \"PyTorch\", not null"});
}

TEST(LogWriter, AFolderWithoutFinishedLogsTakesANewConfiguration) {
  LogCase other = kCase;
  other.image_size = 64;
  for (const int lines : {0, 3}) {
    const ScratchFolder folder;
    {
      LogWriter failed(folder.path(), kCase, {});
      write_lines(failed, lines);
    }
    const LogWriter log(folder.path(), other, {});
    EXPECT_EQ(log.run(), lines == 0 ? 1 : 2);
    expect_refused(folder.path(), {"image_size 64, not 224"});
  }
}

TEST(LogWriter, AFullDiskIsLoudAndLeavesWholeLines) {
  ScratchFolder folder;
  LogWriter log(folder.path(), kCase, {});
  // The kernel limits files to two and a half lines, as a full disk would.
  const std::size_t line_bytes = format_log_line(line_of(0), 128, system_clock::now()).size();
  rlimit before{}, small{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = line_bytes * 5 / 2;
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  int written = 0, code = 0;
  std::string sentence;
  try {
    for (; written < 10; ++written) log.write(line_of(written), system_clock::now());
  } catch (const Error& error) {
    code = static_cast<int>(error.code());
    sentence = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(code, static_cast<int>(ExitCode::io_error));
  EXPECT_EQ(written, 2);
  EXPECT_NE(sentence.find(".log.part at iteration 2"), std::string::npos) << sentence;
  const std::string text = read_text(log.path() + ".part");
  EXPECT_EQ(text.size(), 2 * line_bytes);
  EXPECT_TRUE(text.ends_with("samples/sec\n"));
  expect_error(ExitCode::io_error, {"incomplete"}, [&] { log.finish(); });
  EXPECT_FALSE(std::filesystem::exists(log.path()));
}

}  // namespace
}  // namespace plumb
