#include "plumbline/engine.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/process/side_by_side.h"
#include "base/text.h"
#include "launch/host_launcher.h"

namespace plumb {

namespace fs = std::filesystem;

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
  const std::string name = fs::path(program).filename().string() + ": ";
  std::string sentence = end.errors.substr(0, end.errors.find('\n'));
  if (sentence.starts_with(name)) sentence.erase(0, name.size());
  throw Error(static_cast<ExitCode>(end.code), "{}",
              sentence.empty() ? fmt::format("{} ended with code {}", program, end.code) : sentence);
}

}  // namespace plumb
