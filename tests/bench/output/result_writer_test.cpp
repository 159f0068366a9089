#include "bench/output/result_writer.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "tests/bench/expect_error.h"
#include "tests/results/run_folder.h"

namespace plumb {
namespace {

nlohmann::ordered_json result_in(const std::string& folder) {
  return nlohmann::ordered_json::parse(read_text(folder + "/result.json"));
}

TEST(ResultWriter, FolderNameTellsTheRun) {
  const std::string name = run_folder_name(example_run(100), std::chrono::system_clock::now());
  EXPECT_TRUE(name.starts_with("resnet50_1n2g_b8_fp32_20")) << name;
  EXPECT_EQ(name.size(), std::string("resnet50_1n2g_b8_fp32_20250102-235953").size());
}

TEST(ResultWriter, AResultIsThereFromTheStartMarkedAsFailed) {
  ScratchFolder folder;
  const RunRecord record = example_run(100);
  const ResultWriter writer(folder.path() + "/new/runs", "name", record);
  EXPECT_EQ(writer.folder(), folder.path() + "/new/runs/name_1");
  EXPECT_EQ(result_in(writer.folder()).at("status"), "failed");
  EXPECT_EQ(result_in(writer.folder()).at("failure"), "interrupted before it ended");
  writer.write_result(record);
  EXPECT_EQ(result_in(writer.folder()).at("status"), "ok");
  EXPECT_EQ(result_in(writer.folder()).at("model"), "resnet50");
}

TEST(ResultWriter, WritesFilesWholeAndLeavesNothingElse) {
  ScratchFolder folder;
  const ResultWriter writer(folder.path(), "name", example_run(100));
  writer.write_json("env.json", {{"host", "a\xff"}});
  EXPECT_EQ(folder.list("name_1"), (std::vector<std::string>{"env.json", "result.json"}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(writer.folder()), {}), 2);
  EXPECT_EQ(nlohmann::json::parse(read_text(writer.folder() + "/env.json")).at("host"), "a\xEF\xBF\xBD");
}

TEST(ResultWriter, RunsAtOnceGetFoldersOfTheirOwn) {
  ScratchFolder folder;
  std::vector<std::string> folders(8);
  {
    std::vector<std::jthread> threads;
    for (std::string& mine : folders)
      threads.emplace_back([&] { mine = ResultWriter(folder.path(), "name", example_run(100)).folder(); });
  }
  EXPECT_EQ(std::set<std::string>(folders.begin(), folders.end()).size(), 8U);
  EXPECT_EQ(folder.list().size(), 8U);
}

TEST(ResultWriter, RefusesWhatCannotBeMade) {
  ScratchFolder folder;
  write_text(folder.path() + "/file", "");
  for (const char* inside : {"", "/", "/runs/deeper"})
    expect_error(ExitCode::cannot_create,
                 {"--output " + folder.path() + "/file", "Not a directory; pass another --output"},
                 [&] { ResultWriter(folder.path() + "/file" + inside, "name", example_run(100)); });
  expect_error(ExitCode::cannot_create, {"/proc/runs", "--output"},
               [&] { ResultWriter("/proc/runs", "name", example_run(100)); });
}

TEST(ResultWriter, AFileThatCannotBeWrittenIsAnIoError) {
  ScratchFolder folder;
  const ResultWriter writer(folder.path(), "name", example_run(100));
  std::filesystem::create_directory(writer.folder() + "/env.json");
  expect_error(ExitCode::io_error, {"env.json", "--output"}, [&] { writer.write_json("env.json", {}); });
}

}  // namespace
}  // namespace plumb
