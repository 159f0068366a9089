// R7 and R8: outputs are checked before anything is computed, and runs never mix or overwrite each other.
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "tests/bench/image_files.h"
#include "tests/faults/started_program.h"

namespace plumb {
namespace {

const std::string kRun = kSmallImages + "--iters 2 ";

struct Unwritable {
  std::string name, arguments;
  std::vector<std::string> words;
};
void PrintTo(const Unwritable& output, std::ostream* stream) {
  *stream << output.arguments;
}

// Not even root can make folders in /proc.
const std::vector<Unwritable> kOutputs = {
    {"LogFolderThatIsAFile", "--log-dir a_file", {"a_file", "--log-dir"}},
    {"LogFolderInAFile", "--log-dir a_file/deeper", {"a_file/deeper", "--log-dir"}},
    {"LogFolderNobodyCanMake", "--log-dir /proc/logs --out new/deep", {"/proc/logs", "--log-dir"}},
    {"RunNumberOfAFinishedLog", "--run 7", {"resnet50_b2_fp32_7.log", "--run"}},
    {"RunNumberOfAnUnfinishedLog", "--run 8", {"resnet50_b2_fp32_8.log", "--run"}},
    {"OutThatIsAFile", "--out a_file --log-dir new", {"option --out: a_file is a file and not a folder"}},
    {"OutInAFile", "--out a_file/runs --log-dir new", {"option --out: a_file is a file and not a folder"}},
    {"OutNobodyCanMake", "--out /proc/runs --log-dir new", {"/proc/runs", "--out"}},
    {"WeightsThatExist", "--save-weights a_file", {"--save-weights", "a_file", "exists"}},
    {"WeightsInNoFolder", "--save-weights nowhere/w", {"--save-weights", "nowhere", "create the folder"}},
    {"WeightsNobodyCanWrite", "--save-weights /proc/w", {"--save-weights", "/proc"}},
};

class UnwritableOutputs : public testing::TestWithParam<Unwritable> {};

TEST_P(UnwritableOutputs, AreRefusedAtOnceAndLeaveNothing) {
  const Place place;
  write_text(place.file("a_file"), "keep me");
  std::filesystem::create_directories(place.file("logs/1n1g"));
  write_text(place.file("logs/1n1g/resnet50_b2_fp32_7.log"), "seven\n");
  write_text(place.file("logs/1n1g/resnet50_b2_fp32_8.log.part"), "eight\n");
  write_text(place.file("logs/1n1g/.plumbline-case"),
             "{\"model\":\"resnet50\",\"batch_per_device\":2,\"precision\":\"fp32\",\"image_size\":32}\n");
  const std::vector<std::string> before = place.contents();
  expect_one_sentence(place.run(place.resnet50(kRun + GetParam().arguments)), kCannotCreate,
                      GetParam().words);
  EXPECT_EQ(place.contents(), before);
  EXPECT_EQ(read_text(place.file("a_file")), "keep me");
  EXPECT_EQ(read_text(place.file("logs/1n1g/resnet50_b2_fp32_7.log")), "seven\n");
  EXPECT_EQ(read_text(place.file("logs/1n1g/resnet50_b2_fp32_8.log.part")), "eight\n");
}

INSTANTIATE_TEST_SUITE_P(Faults, UnwritableOutputs, testing::ValuesIn(kOutputs),
                         [](const auto& tested) { return tested.param.name; });

TEST(Outputs, EightStartsAtOnceNeitherMixNorOverwrite) {
  const Place place;
  // One Place, because all share the folder; all write messages to one file.
  std::vector<std::unique_ptr<StartedProgram>> programs;
  const std::string command = place.bench(kSmall + "--iters 2 ");
  for (int i = 0; i < 8; ++i) programs.push_back(std::make_unique<StartedProgram>(place, command, ""));
  for (const auto& program : programs) EXPECT_EQ(program->wait().exit_code, 0);
  const std::vector<std::string> logs = place.contents_ending_in(".log");
  std::vector<std::string> expected;
  for (int run = 1; run <= 8; ++run)
    expected.push_back("logs/1n1g/y1_b2_fp32_" + std::to_string(run) + ".log");
  EXPECT_EQ(logs, expected);
  for (const std::string& log : logs) EXPECT_EQ(expect_whole_lines(place.file(log)), 2) << log;
  EXPECT_TRUE(place.contents_ending_in(".part").empty());
  std::set<std::string> named;
  for (const std::string& name : place.contents_ending_in("/result.json")) {
    const auto result = nlohmann::json::parse(read_text(place.file(name)));
    EXPECT_EQ(result.at("status"), "ok") << name;
    named.insert(result.at("log_files").at(0).get<std::string>());
  }
  EXPECT_EQ(named, std::set<std::string>(expected.begin(), expected.end()));
}

TEST(Outputs, CaseFolderOfAnotherConfigurationIsRefused) {
  const Place place;
  ASSERT_EQ(place.run(place.resnet50(kRun)).exit_code, 0);
  write_image_folder(place.file("images"), 2, 4);
  const std::vector<std::string> before = place.contents();
  const std::string common = "--iters 2 --warmup 1 --threads 1 ";
  for (const std::string other :
       {"--image-size 32 --bs 3", "--image-size 64 --bs 2", "--image-size 32 --bs 2 --data images"}) {
    const Ended ended = place.run("rm -f ../messages; " + place.resnet50(common + other));
    expect_one_sentence(ended, kCannotCreate,
                        {"logs/1n1g holds resnet50 runs with --bs 2", "name another --log-dir"});
    EXPECT_EQ(place.contents(), before) << other;
  }
}

TEST(Outputs, RunOffATerminalSaysAtMostFourLinesAndEndsWithItsFolder) {
  const Place place;
  write_image_folder(place.file("images"), 2, 4);
  write_text(place.file("images/broken.jpg"), "");
  for (const auto& entry : std::filesystem::directory_iterator(place.file("images")))
    if (entry.is_directory()) {
      write_text(entry.path() / "broken.jpg", "no picture");
      break;
    }
  const Ended ended = place.run(
      Place::mpirun(2, place.resnet50(kSmallImages + "--iters 6 --data images --data-workers 1 --verbose")));
  ASSERT_EQ(ended.exit_code, 0) << ended.launcher_messages;
  EXPECT_LE(ended.lines.size(), 4u);
  ASSERT_FALSE(ended.lines.empty());
  EXPECT_TRUE(std::filesystem::exists(place.file(ended.lines.back() + "/result.json"))) << ended.lines.back();
}

// A failure to print the table doesn't fail a checked run.
TEST(Outputs, FullStdoutIsLoudButTheRunStands) {
  const Place place;
  const Ended ended = place.run(place.resnet50(kRun) + " >/dev/full");
  EXPECT_EQ(ended.exit_code, 74);
  EXPECT_EQ(place.contents_ending_in(".log").size(), 1u);
  EXPECT_EQ(place.result().at("status"), "ok");
}

}  // namespace
}  // namespace plumb
