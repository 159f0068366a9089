#include "results/analysis/log_tree.h"

#include <gtest/gtest.h>

#include "tests/bench/expect_error.h"
#include "tests/results/synthetic_log.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

TEST(ParseLogName, ReadsFolderAndFile) {
  const auto parsed = parse_log_name("12n16g", "rn50_b128_fp32_7.log");
  ASSERT_TRUE(std::holds_alternative<LogName>(parsed)) << std::get<std::string>(parsed);
  const LogName& name = std::get<LogName>(parsed);
  EXPECT_EQ(name.nodes, 12);
  EXPECT_EQ(name.devices_per_node, 16);
  EXPECT_EQ(name.model, "rn50");
  EXPECT_EQ(name.batch_per_device, 128);
  EXPECT_EQ(name.precision, "fp32");
  EXPECT_EQ(name.run, 7);
  EXPECT_EQ(name.size().images_per_step, 12 * 16 * 128);
}

TEST(ParseLogName, SaysWhatIsWrong) {
  const auto expect_reason = [](const char* case_name, const char* file_name, const char* word) {
    const auto parsed = parse_log_name(case_name, file_name);
    ASSERT_TRUE(std::holds_alternative<std::string>(parsed)) << case_name << "/" << file_name;
    EXPECT_NE(std::get<std::string>(parsed).find(word), std::string::npos) << std::get<std::string>(parsed);
  };
  const char* good = "rn50_b128_fp32_1.log";
  for (const char* folder : {"1n", "n1g", "0n1g", "1n0g", "01n1g", "1n1gx", "-1n1g", "1x1g", "1n1n1g", "ng",
                             "g", "99999999999n1g", ""})
    expect_reason(folder, good, "folder");
  for (const char* file :
       {"rn50_bz128_fp32_1.log", "rn50_128_fp32_1.log", "rn50_b_fp32_1.log", "rn50_b0_fp32_1.log",
        "rn50_b-8_fp32_1.log", "rn50_b99999999999999999999_fp32_1.log"})
    expect_reason("1n1g", file, "batch");
  for (const char* file : {"rn50_b128_fp32_x.log", "rn50_b128_fp32_.log", "rn50_b128_fp32_01.log",
                           "rn50_b128_fp32_-1.log", "rn50_b128_fp32_1.5.log"})
    expect_reason("1n1g", file, "run");
  expect_reason("1n1g", "rn50_b128_fp32_1_rank0.log", "5 fields");
  expect_reason("1n1g", "resnet50.log", "1 fields");
  expect_reason("1n1g", "_b128_fp32_1.log", "model");
  expect_reason("1n1g", "rn50_b128__1.log", "precision");
  expect_reason("1n1g", "x", "does not end in .log");
}

TEST(FindLogs, SortsBySizeOfTheWorldThenRun) {
  const ScratchFolder folder;
  for (const char* name : {"1n8g/m_b1_fp32_10.log", "1n8g/m_b1_fp32_9.log", "10n1g/m_b1_fp32_1.log",
                           "2n1g/m_b1_fp32_1.log", "1n1g/m_b1_fp32_1.log"})
    folder.write(name, "");
  const LogTree tree = find_logs(folder.path());
  std::vector<std::string> names;
  for (const LogFile& file : tree.files) names.push_back(display_path(file.path, folder.path()));
  EXPECT_EQ(names,
            (std::vector<std::string>{"1n1g/m_b1_fp32_1.log", "2n1g/m_b1_fp32_1.log", "1n8g/m_b1_fp32_9.log",
                                      "1n8g/m_b1_fp32_10.log", "10n1g/m_b1_fp32_1.log"}));
  EXPECT_TRUE(tree.bad.empty());
}

TEST(FindLogs, NamesWhatIsNoLogAndPassesOverOtherFiles) {
  const ScratchFolder folder;
  folder.write("1n1g/m_b1_fp32_1.log.part", "");
  folder.write("1n1g/m_b1_fp32.log", "");
  folder.write("1n1g/notes.txt", "");
  folder.write("1n1g/.hidden.log", "");
  folder.write("other/m_b1_fp32_1.log", "");
  folder.write("m_b1_fp32_1.log", "");
  folder.write("readme.md", "");
  const LogTree tree = find_logs(folder.path());
  EXPECT_TRUE(tree.files.empty());
  ASSERT_EQ(tree.bad.size(), 4u);
  EXPECT_EQ(tree.bad[0].path, "1n1g/m_b1_fp32.log");
  EXPECT_EQ(tree.bad[0].defect.flaw, Flaw::misnamed);
  EXPECT_EQ(tree.bad[1].path, "1n1g/m_b1_fp32_1.log.part");
  EXPECT_EQ(tree.bad[1].defect.flaw, Flaw::unfinished);
  EXPECT_EQ(tree.bad[2].path, "m_b1_fp32_1.log");
  EXPECT_NE(tree.bad[2].defect.reason.find("beside"), std::string::npos);
  EXPECT_EQ(tree.bad[3].path, "other/m_b1_fp32_1.log");
}

TEST(FindLogs, RefusesAMissingFolderAndAFile) {
  const ScratchFolder folder;
  const auto file = folder.write("file", "");
  expect_error(ExitCode::bad_data, {"none", "no folder"}, [&] { find_logs(folder / "none"); });
  expect_error(ExitCode::bad_data, {"file", "no folder"}, [&] { find_logs(file); });
}

TEST(DisplayPath, CantSteerATerminal) {
  const ScratchFolder folder;
  EXPECT_EQ(display_path(folder / "a\x1b[2J\nb", folder.path()), "a?[2J?b");
}

}  // namespace
}  // namespace plumb
