// Starts the programs as a user would and reads what they leave behind.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace plumb {

struct ProgramRun {
  int exit_code = -1;
  std::string output, messages;   // stdout, stderr
  nlohmann::ordered_json result;  // result.json of the newest run folder; null without one
};

// `program arguments` on `ranks` ranks (mpirun for more than one), in `folder`; `before`: shell text that
// stands in front of it all.
ProgramRun run_program(const std::filesystem::path& folder, int ranks, const std::string& program,
                       const std::string& arguments, const std::string& before = "");

}  // namespace plumb
