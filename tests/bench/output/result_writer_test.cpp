#include "bench/output/result_writer.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "tests/bench/expect_error.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

RunRecord a_record() {
  RunRecord record;
  record.model = "resnet50";
  record.precision = "fp32";
  record.device = "cpu";
  record.batch_per_device = 8;
  record.devices_per_node = record.world_size = 2;
  return record;
}

nlohmann::ordered_json result_in(const std::string& folder) {
  return nlohmann::ordered_json::parse(read_text(folder + "/result.json"));
}

TEST(ResultWriter, FolderNameTellsTheRun) {
  const std::string name = run_folder_name(a_record(), std::chrono::system_clock::now());
  EXPECT_TRUE(name.starts_with("resnet50_1n2g_b8_fp32_20")) << name;
  EXPECT_EQ(name.size(), std::string("resnet50_1n2g_b8_fp32_20250102-235953").size());
}

TEST(ResultWriter, AResultIsThereFromTheStartMarkedAsFailed) {
  ScratchFolder folder;
  RunRecord record = a_record();
  record.status = "ok";
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
  const ResultWriter writer(folder.path(), "name", a_record());
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
      threads.emplace_back([&] { mine = ResultWriter(folder.path(), "name", a_record()).folder(); });
  }
  EXPECT_EQ(std::set<std::string>(folders.begin(), folders.end()).size(), 8U);
  EXPECT_EQ(folder.list().size(), 8U);
}

TEST(ResultWriter, RefusesWhatCannotBeMade) {
  ScratchFolder folder;
  write_text(folder.path() + "/file", "");
  for (const char* inside : {"", "/", "/runs/deeper"})
    expect_error(ExitCode::cannot_create,
                 {"--out " + folder.path() + "/file", "Not a directory; pass another --out"},
                 [&] { ResultWriter(folder.path() + "/file" + inside, "name", a_record()); });
  expect_error(ExitCode::cannot_create, {"/proc/runs", "--out"},
               [&] { ResultWriter("/proc/runs", "name", a_record()); });
}

TEST(ResultWriter, AFileThatCannotBeWrittenIsAnIoError) {
  ScratchFolder folder;
  const ResultWriter writer(folder.path(), "name", a_record());
  std::filesystem::create_directory(writer.folder() + "/env.json");
  expect_error(ExitCode::io_error, {"env.json", "--out"}, [&] { writer.write_json("env.json", {}); });
}

}  // namespace
}  // namespace plumb
