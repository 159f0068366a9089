#include "launch/host_launcher.h"

#include "base/error.h"
#include "base/paths.h"
#include "base/process/side_by_side.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

constexpr double kPatienceSeconds = 120;
constexpr int kUsageCode = static_cast<int>(ExitCode::usage),
              kDataCode = static_cast<int>(ExitCode::bad_data);

}  // namespace

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

void check_host_layout(const SweepLauncher& launcher, int nodes, int devices_per_node,
                       const std::vector<std::string>& program) {
  std::vector<std::string> words = hosts_words(launcher, nodes, devices_per_node);
  words.emplace_back("--print");
  words.insert(words.end(), program.begin(), program.end());
  const CommandEnd answer =
      run_side_by_side({words}, {.timeout_seconds = kPatienceSeconds}, SignalWatch()).front();
  if (answer.code == 0) return;
  const std::string speaker = std::string(kLaunchRun) + ": ";
  const std::string line = printable(answer.errors.substr(0, answer.errors.find('\n')));
  if (line.starts_with(speaker) && (answer.code == kUsageCode || answer.code == kDataCode))
    throw Error(ExitCode::usage, line.substr(speaker.size()));
  throw Error(ExitCode::unavailable,
              "{} does not work (exit code {}): {}; correct that, then start the sweep again",
              launcher.command, answer.code, line.empty() ? "it said nothing" : line);
}

}  // namespace plumb
