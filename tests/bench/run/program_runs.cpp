#include "tests/bench/run/program_runs.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>

#include "tests/scratch_folder.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

nlohmann::ordered_json newest_result(const fs::path& runs) {
  std::vector<fs::path> folders;
  if (fs::exists(runs))
    for (const auto& entry : fs::directory_iterator(runs)) folders.push_back(entry.path());
  if (folders.empty()) return {};
  const auto newest = std::max_element(
      folders.begin(), folders.end(),
      [](const fs::path& a, const fs::path& b) { return fs::last_write_time(a) < fs::last_write_time(b); });
  return nlohmann::ordered_json::parse(read_text(*newest / "result.json"), nullptr, false);
}

}  // namespace

ProgramRun run_program(const fs::path& folder, int ranks, const std::string& program,
                       const std::string& arguments, const std::string& before) {
  const std::string launcher =
      ranks == 1 ? "" : PLUMB_MPIRUN " " PLUMB_MPIRUN_OPTIONS " -np " + std::to_string(ranks) + " ";
  const std::string command = before + "cd '" + folder.string() +
                              "' && OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " + launcher +
                              program + " " + arguments + " >out.txt 2>err.txt";
  const int status = std::system(command.c_str());
  ProgramRun run;
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run.output = read_text(folder / "out.txt");
  run.messages = read_text(folder / "err.txt");
  run.result = newest_result(folder / "runs");
  return run;
}

void expect_near(const std::vector<double>& values, const std::vector<double>& wanted, double relative) {
  ASSERT_EQ(values.size(), wanted.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i] / wanted[i], 1, relative) << "at " << i;
}

}  // namespace plumb
