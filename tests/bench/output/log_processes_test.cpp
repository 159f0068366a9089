#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>

#include "bench/output/log_writer.h"
#include "tests/bench/expect_error.h"
#include "tests/bench/output/log_lines.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

using std::chrono::system_clock;

// Starts `count` processes at once; each exits with `body`'s return value.
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
    // Root may write everywhere, so become nobody.
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
      line.loss = index;  // identifies the writer of the line
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

TEST(LogWriter, RunsAtOnceHaveOneNumberInAllFormats) {
  ScratchFolder folder;
  const std::vector<int> codes = run_processes(6, [&](int index) {
    // Every second process also writes the face formats.
    LogWriter log(folder.path(), kCase, {}, index % 2 ? kFaceFormats : std::vector<const LogFormat*>{});
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
        usleep(2000);  // an iteration; writing takes only microseconds of it
      }
    }
    // At an arbitrary moment, after some lines.
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
