#include "launch/programs.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/paths.h"
#include "base/process/side_by_side.h"
#include "base/text.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

// The first line of what the program said, without its name in front, or how it ended without a word.
std::string sentence_of(const CommandEnd& end, const std::string& program) {
  const std::string line = printable(end.errors.substr(0, end.errors.find('\n'))), speaker = program + ": ";
  if (line.empty()) return fmt::format("{} ended with code {}", program, end.code);
  return line.starts_with(speaker) ? line.substr(speaker.size()) : line;
}

}  // namespace

std::string own_program() {
  std::error_code error;
  const fs::path path = path_of_this_program();
  const fs::path starter = path.parent_path().parent_path() / "bin" / path.filename();
  return path.parent_path().filename() == "libexec" && fs::exists(starter, error) ? starter.string()
                                                                                  : path.string();
}

std::string program_path(const std::string& program, const std::string& sibling) {
  if (program.empty()) return (fs::path(own_program()).parent_path() / sibling).string();
  if (program.find('/') != std::string::npos) return absolute_path(program).lexically_normal().string();
  if (std::string path = path_of_program(program); !path.empty()) return path;
  throw Error(ExitCode::unavailable, "--program {}: it is not in PATH; pass its path", printable(program));
}

std::string engine_program(const std::string& name, const fs::path& folder) {
  const fs::path own = path_of_this_program().parent_path();
  const fs::path beside = (folder.empty() ? own : folder) / name;
  for (const fs::path& place : {beside, own / name, fs::path(name)})
    if (std::string path = path_of_program(place); !path.empty()) return path;
  throw Error(ExitCode::unavailable,
              "cannot find {}; install plumbline-bench, or put {} into a folder of PATH", beside.string(),
              name);
}

nlohmann::ordered_json ask_engine(const std::string& program, const std::vector<std::string>& arguments) {
  constexpr double kPatienceSeconds = 60;
  CommandWords words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const CommandEnd end =
      run_side_by_side({words}, {.timeout_seconds = kPatienceSeconds}, SignalWatch()).front();
  if (end.timed_out)
    throw Error(ExitCode::unavailable, "{} did not answer within {} s; start it by hand", program,
                kPatienceSeconds);
  if (end.code == 0) return nlohmann::ordered_json::parse(end.output, nullptr, false);
  throw Error(static_cast<ExitCode>(end.code), "{}", sentence_of(end, fs::path(program).filename()));
}

fs::path find_launch_run() {
  std::error_code error;
  for (fs::path folder = path_of_this_program().parent_path();; folder = folder.parent_path()) {
    for (const char* place : {"", "share/plumbline"})
      if (const fs::path script = folder / place / kLaunchRun; fs::is_regular_file(script, error))
        return script;
    if (folder == folder.parent_path()) break;
  }
  throw Error(ExitCode::unavailable,
              "{}, which starts runs on hosts, is not next to {}; install the whole package, or set "
              "'command' in [launcher] to mpirun or srun",
              kLaunchRun, path_of_this_program().string());
}

void check_hosts(const SweepPlan& plan, const std::string& file) {
  std::set<std::pair<int, int>> layouts;
  for (const SweepRun& run : plan.runs) layouts.emplace(run.nodes, run.devices_per_node);
  std::vector<CommandWords> commands;
  for (const auto& [nodes, devices] : layouts) {
    commands.push_back(hosts_words(plan.launcher, nodes, devices));
    commands.back().insert(commands.back().end(), {"--print", "program"});
  }
  for (const CommandEnd& end : run_side_by_side(commands, {.timeout_seconds = 120}, SignalWatch()))
    if (end.code != 0)
      throw Error(ExitCode::bad_data, "{}: the hosts cannot run a case: {}", file,
                  sentence_of(end, kLaunchRun));
}

}  // namespace plumb
