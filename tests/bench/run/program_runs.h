// Starts the programs like a user and reads their outputs.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace plumb {

struct ProgramRun {
  int exit_code = -1;
  std::string output, messages;   // stdout, stderr
  nlohmann::ordered_json result;  // result.json of the newest run folder; null if there is not a folder
};

// Runs `program arguments` on `ranks` ranks (mpirun for more than one) in `folder`; `before`: shell text put
// in front.
ProgramRun run_program(const std::filesystem::path& folder, int ranks, const std::string& program,
                       const std::string& arguments, const std::string& before = "");

// Fails the test where values[i] / wanted[i] is further than `relative` from 1.
void expect_near(const std::vector<double>& values, const std::vector<double>& wanted, double relative);

}  // namespace plumb
