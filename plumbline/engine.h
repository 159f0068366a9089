// Questions that only the programs that train can answer: each is asked by starting one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace plumb {

// The path of bench_resnet50 or the like: in `folder`, else beside this program, else in PATH. Throws
// Error(unavailable) if it isn't there.
std::string engine_program(const std::string& name, const std::filesystem::path& folder = {});

// What the program prints with these arguments, as JSON; null if that is no JSON. Throws Error with the
// program's own sentence and exit code.
nlohmann::ordered_json ask_engine(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace plumb
