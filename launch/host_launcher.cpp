#include "launch/host_launcher.h"

#include <sys/wait.h>

#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

constexpr int kUsageCode = static_cast<int>(ExitCode::usage),
              kDataCode = static_cast<int>(ExitCode::bad_data);

struct ShellAnswer {
  int code = -1;
  std::string first_line;  // of both outputs
};

ShellAnswer ask_shell(const std::vector<std::string>& command) {
  ShellAnswer answer;
  std::string text;
  std::FILE* pipe = ::popen((shell_text(command) + " 2>&1 </dev/null").c_str(), "re");
  if (pipe == nullptr) return answer;
  for (int letter = 0; (letter = std::fgetc(pipe)) != EOF;) text += static_cast<char>(letter);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) answer.code = WEXITSTATUS(status);
  answer.first_line = printable(text.substr(0, text.find('\n')));
  return answer;
}

}  // namespace

fs::path find_launch_run(const fs::path& program) {
  std::error_code error;
  for (fs::path folder = program.parent_path();; folder = folder.parent_path()) {
    for (const char* place : {"", "share/plumbline"})
      if (const fs::path script = folder / place / kLaunchRun; fs::is_regular_file(script, error))
        return script;
    if (folder == folder.parent_path()) break;
  }
  throw Error(ExitCode::unavailable,
              "{}, which starts runs on hosts, is not beside {}; install the whole package, or name mpirun "
              "or srun as "
              "'command' in [launcher] without hosts",
              kLaunchRun, program.string());
}

void check_host_layout(const Launcher& launcher, int nodes, int devices_per_node) {
  std::vector<std::string> words = hosts_words(launcher, nodes, devices_per_node);
  words.insert(words.end(), {"--print", "true"});
  const ShellAnswer answer = ask_shell(words);
  if (answer.code == 0) return;
  const std::string speaker = std::string(kLaunchRun) + ": ";
  const bool refuses = answer.first_line.starts_with(speaker);
  if (refuses && (answer.code == kUsageCode || answer.code == kDataCode))
    throw Error(ExitCode::usage, answer.first_line.substr(speaker.size()));
  throw Error(
      ExitCode::unavailable, "{} doesn't work (exit code {}): {}; correct that, then start the sweep again",
      launcher.command, answer.code, answer.first_line.empty() ? "it said nothing" : answer.first_line);
}

}  // namespace plumb
