#include "bench/log_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <limits>
#include <regex>

#include "results/analyze.h"
#include "tests/bench/expect_error.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

using std::chrono::system_clock;

const LogCase kCase = {.model = "resnet50", .precision = "fp32", .batch_per_device = 128};

LogLine line_of(std::int64_t iteration) {
  return {.iteration = iteration,
          .loss = 6.999,
          .learning_rate = 0.1,
          .seconds = 0.320803,
          .end_seconds = 0.320803 * static_cast<double>(iteration + 1)};
}

void write_lines(LogWriter& log, int count) {
  for (int i = 0; i < count; ++i) log.write(line_of(i), system_clock::now());
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class InTimeZone {
 public:
  explicit InTimeZone(const char* zone) {
    setenv("TZ", zone, 1);
    tzset();
  }
  ~InTimeZone() {
    unsetenv("TZ");
    tzset();
  }
};

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
  // Clocks go back one hour at 2024-10-27 01:00 UTC: a run that begins a second before ends two seconds
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
  expect_error(ExitCode::cannot_create, {"resnet50_b128_fp32_5.log", "run 5 exists", "--run"},
               [&] { write_run(5); });
  LogWriter running(folder.path(), kCase, 7);
  expect_error(ExitCode::cannot_create, {"run 7 exists"}, [&] { write_run(7); });
}

TEST(LogWriter, RenamesWithoutReplacing) {
  ScratchFolder folder;
  LogWriter log(folder.path(), kCase, {});
  write_lines(log, 1);
  write_text(log.path(), "somebody else's");
  expect_error(ExitCode::cannot_create, {"can't be renamed", log.path()}, [&] { log.finish(); });
  EXPECT_EQ(read_text(log.path()), "somebody else's");
}

TEST(LogWriter, RefusesAFolderThatIsAFile) {
  ScratchFolder folder;
  write_text(folder.path() + "/logs", "");
  expect_error(ExitCode::cannot_create, {folder.path() + "/logs", "Not a directory", "--log-dir"},
               [&] { LogWriter(folder.path() + "/logs", kCase, {}); });
  std::filesystem::create_directory(folder.path() + "/other");
  write_text(folder.path() + "/other/1n1g", "");
  expect_error(ExitCode::cannot_create, {"other/1n1g", "--log-dir"},
               [&] { LogWriter(folder.path() + "/other", kCase, {}); });
}

TEST(LogWriter, RefusesAFolderOnAFileSystemThatCannotHoldIt) {
  expect_error(ExitCode::cannot_create, {"/proc/plumbline/1n1g", "--log-dir"},
               [] { LogWriter("/proc/plumbline", kCase, {}); });
}

TEST(LogWriter, RefusesAFolderOfAnotherConfiguration) {
  ScratchFolder folder;
  {
    LogWriter log(folder.path(), kCase, {});
    write_lines(log, 1);
    log.finish();
  }
  std::vector<LogCase> others(6, kCase);
  others[0].model = "r50";
  others[1].batch_per_device = 64;
  others[2].precision = "fp16";
  others[3].image_size = 64;
  others[4].data = "images";
  others[5].data = "batch";
  const std::vector<std::string> theirs = {"this r50 run",
                                           "--bs 64 --fp32 --image-size 224 on synthetic data",
                                           "--bs 128 --fp16 --image-size 224 on synthetic data",
                                           "--bs 128 --fp32 --image-size 64 on synthetic data",
                                           "--bs 128 --fp32 --image-size 224 on images",
                                           "--bs 128 --fp32 --image-size 224 on a batch file"};
  for (std::size_t i = 0; i < others.size(); ++i)
    expect_error(ExitCode::cannot_create,
                 {"option --log-dir: " + folder.path() +
                      "/1n1g holds resnet50 runs with --bs 128 --fp32 --image-size 224 on synthetic data",
                  theirs[i], "; name another --log-dir"},
                 [&] { LogWriter(folder.path(), others[i], {}); });
  EXPECT_EQ(folder.list("1n1g"), std::vector<std::string>{"resnet50_b128_fp32_1.log"});
}

TEST(LogWriter, ACaseWithoutASourceOfDataIsSynthetic) {
  ScratchFolder folder;
  std::filesystem::create_directory(folder.path() + "/1n1g");
  write_text(folder.path() + "/1n1g/resnet50_b128_fp32_1.log", "");
  write_text(folder.path() + "/1n1g/.plumbline-case",
             "{\"model\":\"resnet50\",\"batch_per_device\":128,\"precision\":\"fp32\",\"image_size\":224}\n");
  LogCase images = kCase;
  images.data = "images";
  expect_error(ExitCode::cannot_create, {"on synthetic data", "on images"},
               [&] { LogWriter(folder.path(), images, {}); });
  EXPECT_EQ(LogWriter(folder.path(), kCase, {}).run(), 2);
}

TEST(LogWriter, RefusesLogsWhoseCaseCannotBeRead) {
  for (const char* junk : {"junk", "{}", "[1]", "{\"model\":1}"}) {
    ScratchFolder folder;
    std::filesystem::create_directory(folder.path() + "/1n1g");
    write_text(folder.path() + "/1n1g/resnet50_b128_fp32_1.log", "");
    write_text(folder.path() + "/1n1g/.plumbline-case", junk);
    expect_error(ExitCode::cannot_create, {"resnet50_b128_fp32_1.log of another configuration", "--log-dir"},
                 [&] { LogWriter(folder.path(), kCase, {}); });
  }
}

TEST(LogWriter, AFolderWithoutLogsTakesANewConfiguration) {
  ScratchFolder folder;
  LogCase other = kCase;
  other.image_size = 64;
  { LogWriter log(folder.path(), kCase, {}); }
  LogWriter log(folder.path(), other, {});
  expect_error(ExitCode::cannot_create, {"--image-size 64", "--image-size 224"},
               [&] { LogWriter(folder.path(), kCase, {}); });
}

TEST(LogWriter, RefusesAFolderWithLogsOfOtherPrograms) {
  ScratchFolder folder;
  std::filesystem::create_directory(folder.path() + "/1n1g");
  write_text(folder.path() + "/1n1g/rn50_b128_fp32_1.log", "");
  expect_error(ExitCode::cannot_create, {"rn50_b128_fp32_1.log"},
               [&] { LogWriter(folder.path(), kCase, {}); });
}

TEST(LogWriter, AFullDiskIsLoudAndLeavesWholeLines) {
  ScratchFolder folder;
  LogWriter log(folder.path(), kCase, {});
  // The kernel refuses to let files grow beyond two and a half lines, as a full disk would.
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
  EXPECT_NE(sentence.find(".log.part can't be written at iteration 2"), std::string::npos) << sentence;
  const std::string text = read_text(log.path() + ".part");
  EXPECT_EQ(text.size(), 2 * line_bytes);
  EXPECT_TRUE(text.ends_with("samples/sec\n"));
  expect_error(ExitCode::io_error, {"incomplete"}, [&] { log.finish(); });
  EXPECT_FALSE(std::filesystem::exists(log.path()));
}

const std::vector<const Dialect*> kFaceDialects = {&kMxnetArcface, &kMxnetPartialFc, &kOneflowFace, &kPlsc};

// A step time that varies, and a slow start.
double seconds_of(std::int64_t iteration) {
  return 0.25 + 0.01 * std::sin(static_cast<double>(iteration)) +
         2.0 / static_cast<double>(iteration * iteration + 1);
}

// A run of so many iterations in all dialects.
void write_face_run(const std::string& folder, const LogCase& log_case, int iterations) {
  LogWriter log(folder, log_case, {}, kFaceDialects);
  double end_seconds = 0;
  for (int i = 0; i < iterations; ++i) {
    end_seconds += seconds_of(i);
    log.write({.iteration = i,
               .loss = 45.1,
               .top5 = std::numeric_limits<double>::quiet_NaN(),
               .learning_rate = 0.1,
               .seconds = seconds_of(i),
               .end_seconds = end_seconds},
              system_clock::now());
  }
  log.finish();
}

// Mean of the speeds of lines of `step` iterations, from `first` up to `end`.
double mean_speed(double images_per_step, int first, int end, int step) {
  double sum = 0;
  for (int i = first; i < end; i += step) {
    double seconds = 0;
    for (int k = i; k < i + step; ++k) seconds += seconds_of(k);
    sum += images_per_step * step / seconds;
  }
  return sum / ((end - first) / step);
}

double average_of(const std::string& folder, const char* dialect, WindowChoice window,
                  bool as_published = false) {
  const Analysis analysis =
      analyze_logs(folder, {.dialect = dialect, .window = window, .as_published = as_published});
  EXPECT_TRUE(analysis.bad.empty()) << folder;
  return analysis.cases.front().average.get<double>();
}

TEST(LogWriter, FurtherDialectsGiveTheRunsThroughput) {
  LogCase log_case = {.model = "r50", .precision = "fp32", .batch_per_device = 64, .image_size = 112};
  for (const int nodes : {1, 4}) {
    ScratchFolder folder;
    log_case.nodes = nodes;
    log_case.devices_per_node = 8;
    write_face_run(folder.path(), log_case, 150);
    const double images = 64 * 8 * nodes;
    const auto at = [&](const char* dialect) { return folder.path() + "/" + dialect; };
    // What the lines carry is rounded: two decimals, and one of each node's speed.
    const double arcface_digits = 0.05 * nodes + 0.005;
    EXPECT_NEAR(average_of(at("mxnet_arcface"), "auto", {}), mean_speed(images, 20, 120, 20), arcface_digits);
    EXPECT_NEAR(average_of(at("mxnet_arcface"), "auto", {120, 40}), mean_speed(images, 40, 120, 20),
                arcface_digits);
    EXPECT_NEAR(average_of(at("mxnet_partial_fc"), "auto", {150, 50}), mean_speed(images, 50, 150, 1), 0.055);
    EXPECT_NEAR(average_of(at("oneflow_face"), "auto", {}), mean_speed(images, 25, 126, 1), 0.005501);
    EXPECT_NEAR(average_of(at("plsc"), "auto", {}), mean_speed(images, 50, 150, 10), 0.0101);
    EXPECT_NEAR(average_of(folder.path(), "auto", {150, 50}), mean_speed(images, 50, 150, 1), 0.0101);
    for (const char* dialect : {"mxnet_arcface", "mxnet_partial_fc", "oneflow_face"})
      EXPECT_EQ(average_of(at(dialect), "auto", {}), average_of(at(dialect), dialect, {}, true)) << dialect;
  }
}

TEST(LogWriter, AccuracyThatIsNotCountedIsPrintedAsNan) {
  LogLine line = line_of(0);
  line.top5 = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(format_log_line(line, 128, system_clock::now()).find("acc5 nan, lr"), std::string::npos);
}

TEST(LogWriter, EachDialectHasItsLine) {
  ScratchFolder folder;
  const InTimeZone utc("UTC");
  {
    LogWriter log(folder.path(), kCase, {}, kFaceDialects);
    for (int i = 0; i < 25; ++i) {
      LogLine line = line_of(i);
      line.seconds = 0.25;
      line.end_seconds = 0.25 * (i + 1);
      log.write(line, system_clock::from_time_t(1735862390));
    }
    EXPECT_EQ(log.paths().size(), 5U);
    log.finish();
  }
  const auto lines = [&](const char* dialect) {
    return lines_of(read_text(folder.path() + "/" + dialect + "/1n1g/resnet50_b128_fp32_1.log"));
  };
  EXPECT_EQ(
      lines("mxnet_arcface"),
      std::vector<std::string>{"INFO:root:Epoch[0] Batch [20]\tSpeed: 512.00 samples/sec\tacc=0.000000"});
  ASSERT_EQ(lines("mxnet_partial_fc").size(), 24U);
  EXPECT_EQ(lines("mxnet_partial_fc")[0],
            "rank-id:0:2025-01-02 23:59:50,500-Iter:2 Rank:512.00 it/sec Total:512.00 it/sec [0][loss]:7.00");
  ASSERT_EQ(lines("oneflow_face").size(), 25U);
  EXPECT_EQ(lines("oneflow_face")[0], "train: iter 0, loss 6.999000, throughput: 512.000");
  EXPECT_EQ(lines("plsc"), (std::vector<std::string>{
                               "INFO 2025-01-02 23:59:52,500 entry.py:1020] Pass:0 batch:0 lr:0.10000000 "
                               "loss:6.999000 qps:512.00",
                               "INFO 2025-01-02 23:59:55,000 entry.py:1020] Pass:0 batch:10 lr:0.10000000 "
                               "loss:6.999000 qps:512.00"}));
}

TEST(LogWriter, ANumberIsFreeInAllDialects) {
  ScratchFolder folder;
  const std::string plsc = folder.path() + "/plsc/1n1g";
  std::filesystem::create_directories(plsc);
  write_text(plsc + "/resnet50_b128_fp32_1.log", "");
  write_text(plsc + "/resnet50_b128_fp32_2.log.part", "");
  const std::vector<const Dialect*> further = {&kPlsc};
  EXPECT_EQ(LogWriter(folder.path(), kCase, {}, further).run(), 3);
  EXPECT_EQ(LogWriter(folder.path(), kCase, {}).run(), 1);
  expect_error(ExitCode::cannot_create, {"run 2 exists already", "dialects", "--run"},
               [&] { LogWriter(folder.path(), kCase, 2, further); });
  EXPECT_TRUE(folder.list("1n1g").empty());
}

TEST(LogWriter, DialectFoldersHoldOneConfigurationEach) {
  ScratchFolder folder;
  LogCase arcface = kCase;
  arcface.head = "--head mp --classes 1000";
  const auto write_run = [&](const LogCase& log_case, const std::string& log_dir) {
    LogWriter log(log_dir, log_case, {}, {&kOneflowFace});
    write_lines(log, 1);
    log.finish();
  };
  write_run(arcface, folder.path());
  std::filesystem::remove_all(folder.path() + "/1n1g");
  arcface.head = "--head dp --classes 1000";
  expect_error(ExitCode::cannot_create, {"/oneflow_face/1n1g holds", "--head mp --classes 1000", "--head dp"},
               [&] { write_run(arcface, folder.path()); });
  EXPECT_TRUE(folder.list("1n1g").empty());
}

TEST(HeadOptions, AreTheOnesThatTellRunsApart) {
  EXPECT_EQ(head_options({{"model", "resnet50"}}), "");
  EXPECT_EQ(head_options({{"head", "mp"}, {"classes", 4}, {"embedding", 128}, {"sample_rate", nullptr}}),
            "--head mp --classes 4 --embedding 128");
  EXPECT_EQ(head_options({{"head", "pfc"}, {"classes", 85742}, {"embedding", 512}, {"sample_rate", 0.1}}),
            "--head pfc --classes 85742 --embedding 512 --sample-rate 0.1");
}

TEST(LogWriter, AllLogsGetTheirNamesOrNone) {
  ScratchFolder folder;
  LogWriter log(folder.path(), kCase, {}, kFaceDialects);
  write_lines(log, 25);
  write_text(folder.path() + "/plsc/1n1g/resnet50_b128_fp32_1.log", "somebody else's");
  expect_error(ExitCode::cannot_create, {"can't be renamed", "/plsc/"}, [&] { log.finish(); });
  EXPECT_EQ(folder.list("1n1g"), std::vector<std::string>{"resnet50_b128_fp32_1.log.part"});
  EXPECT_EQ(folder.list("oneflow_face/1n1g"), std::vector<std::string>{"resnet50_b128_fp32_1.log.part"});
}

TEST(LogWriter, ADialectWithoutALineLeavesNoLog) {
  ScratchFolder folder;
  {
    LogWriter log(folder.path(), kCase, {}, {&kOneflowFace, &kPlsc});
    write_lines(log, 5);
    EXPECT_EQ(log.paths().size(), 2U);
    log.finish();
  }
  EXPECT_EQ(folder.list("oneflow_face/1n1g"), std::vector<std::string>{"resnet50_b128_fp32_1.log"});
  EXPECT_TRUE(folder.list("plsc/1n1g").empty());
}

TEST(DialectsToWrite, AreThoseWithALogOfTheirOwn) {
  EXPECT_TRUE(dialects_to_write("", 0).empty());
  EXPECT_TRUE(dialects_to_write("paddle_speed,paddle_time,mxnet_rn50v1b", 1).empty());
  EXPECT_EQ(dialects_to_write("plsc,paddle_time,mxnet_arcface,plsc", 150),
            (std::vector<const Dialect*>{&kMxnetArcface, &kPlsc}));
  for (const char* names : {"tf", "plsc,", ",", "plsc,tf", "plsc mxnet_arcface", "auto"})
    expect_error(ExitCode::usage, {"option --dialect", "oneflow_face"}, [&] { dialects_to_write(names, 0); });
  expect_error(ExitCode::usage, {"option --iters: 9", "plsc", "at least 10"},
               [] { dialects_to_write("plsc", 9); });
  expect_error(ExitCode::usage, {"option --iters: 1", "mxnet_partial_fc", "at least 2"},
               [] { dialects_to_write("mxnet_partial_fc", 1); });
}

// Starts `count` processes at once; each ends with what `body` returns.
std::vector<int> run_processes(int count, const std::function<int(int)>& body) {
  int gate[2];
  EXPECT_EQ(pipe(gate), 0);
  std::vector<pid_t> children;
  for (int index = 0; index < count; ++index) {
    const pid_t child = fork();
    if (child == 0) {
      char byte;
      close(gate[1]);
      if (read(gate[0], &byte, 1) < 0) _exit(99);
      int code = 98;
      try {
        code = body(index);
      } catch (const Error& error) {
        code = static_cast<int>(error.code());
      }
      _exit(code);
    }
    children.push_back(child);
  }
  close(gate[0]);
  close(gate[1]);
  std::vector<int> codes;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  return codes;
}

TEST(LogWriter, RefusesAFolderThatIsNotWritable) {
  ScratchFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  const std::vector<int> codes = run_processes(1, [&](int) {
    // Root may write everywhere: be nobody.
    if (geteuid() == 0 && seteuid(65534) != 0) return 97;
    LogWriter log(folder.path(), kCase, {});
    return 0;
  });
  EXPECT_EQ(codes.front(), static_cast<int>(ExitCode::cannot_create));
  chmod(folder.path().c_str(), 0755);
}

TEST(LogWriter, EightRunsAtOnceNeverMixOrOverwrite) {
  ScratchFolder folder;
  constexpr int kLines = 120;
  const std::vector<int> codes = run_processes(8, [&](int index) {
    LogWriter log(folder.path(), kCase, {});
    for (int i = 0; i < kLines; ++i) {
      LogLine line = line_of(i);
      line.loss = index;  // whose line it is
      log.write(line, system_clock::now());
    }
    log.finish();
    return 0;
  });
  EXPECT_EQ(codes, std::vector<int>(8, 0));
  std::vector<int> seen(8, 0);
  for (int run = 1; run <= 8; ++run) {
    const auto lines =
        lines_of(read_text(folder.path() + "/1n1g/resnet50_b128_fp32_" + std::to_string(run) + ".log"));
    ASSERT_EQ(lines.size(), static_cast<std::size_t>(kLines)) << run;
    const int owner = std::stoi(lines.front().substr(lines.front().find("loss ") + 5));
    for (const std::string& line : lines)
      EXPECT_EQ(std::stoi(line.substr(line.find("loss ") + 5)), owner) << "run " << run;
    ++seen.at(static_cast<std::size_t>(owner));
  }
  EXPECT_EQ(seen, std::vector<int>(8, 1));
  EXPECT_EQ(folder.list("1n1g").size(), 8U);
}

TEST(LogWriter, RunsAtOnceHaveOneNumberInAllDialects) {
  ScratchFolder folder;
  const std::vector<int> codes = run_processes(6, [&](int index) {
    // Some with, some without.
    LogWriter log(folder.path(), kCase, {}, index % 2 ? kFaceDialects : std::vector<const Dialect*>{});
    write_lines(log, 20 + index);
    log.finish();
    return 0;
  });
  EXPECT_EQ(codes, std::vector<int>(6, 0));
  EXPECT_EQ(folder.list("1n1g").size(), 6U);
  ASSERT_EQ(folder.list("oneflow_face/1n1g").size(), 3U);
  for (const std::string& name : folder.list("oneflow_face/1n1g"))
    EXPECT_EQ(lines_of(read_text(folder.path() + "/oneflow_face/1n1g/" + name)).size(),
              lines_of(read_text(folder.path() + "/1n1g/" + name)).size());
}

TEST(LogWriter, OfTwoConfigurationsAtOnceOneIsRefused) {
  ScratchFolder folder;
  const std::vector<int> codes = run_processes(8, [&](int index) {
    LogCase log_case = kCase;
    log_case.image_size = index % 2 == 0 ? 224 : 64;
    LogWriter log(folder.path(), log_case, {});
    write_lines(log, 5);
    log.finish();
    return 0;
  });
  const int refused = static_cast<int>(ExitCode::cannot_create);
  const int winner = codes[0] == 0 ? 0 : 1;
  for (int index = 0; index < 8; ++index)
    EXPECT_EQ(codes[static_cast<std::size_t>(index)], index % 2 == winner ? 0 : refused) << index;
  EXPECT_EQ(folder.list("1n1g").size(), 4U);
}

TEST(LogWriter, AKilledRunLeavesWholeLinesAndNoLog) {
  for (int round = 0; round < 20; ++round) {
    ScratchFolder folder;
    const std::string part = folder.path() + "/1n1g/resnet50_b128_fp32_1.log.part";
    const pid_t child = fork();
    if (child == 0) {
      LogWriter log(folder.path(), kCase, {});
      for (int i = 0;; ++i) {
        log.write(line_of(i), system_clock::now());
        usleep(2000);  // an iteration; writing takes microseconds of it
      }
    }
    // At an arbitrary moment, with some lines written.
    for (int wait = 0; wait < 100'000 && read_text(part).empty(); ++wait) usleep(50);
    usleep(static_cast<useconds_t>(1370 * round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_EQ(folder.list("1n1g"), std::vector<std::string>{"resnet50_b128_fp32_1.log.part"});
    const std::vector<std::string> lines = lines_of(read_text(part));
    EXPECT_FALSE(lines.empty());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      EXPECT_NE(lines[i].find("train batch " + std::to_string(i) + "]"), std::string::npos) << lines[i];
      EXPECT_TRUE(lines[i].ends_with(" samples/sec")) << lines[i];
    }
  }
}

}  // namespace
}  // namespace plumb
