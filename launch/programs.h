// The programs around this one: where they are, and questions that only they can answer.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "launch/sweep/sweep_plan.h"

namespace plumb {

// The path of this program, or of the script in bin/ that starts it with a bundle's libraries.
std::string own_program();

// The path of `program`, given by name or path; if that is empty, of `sibling` next to this program. It may
// be missing here: other hosts are asked for it.
std::string program_path(const std::string& program, const std::string& sibling);

// The path of bench_resnet50 or the like: in `folder`, else next to this program, else in PATH. Throws
// Error(unavailable) if it isn't there.
std::string engine_program(const std::string& name, const std::filesystem::path& folder = {});

// What the program prints with these arguments, as JSON; null if that is no JSON. Throws Error with the
// program's own sentence and exit code.
nlohmann::ordered_json ask_engine(const std::string& program, const std::vector<std::string>& arguments);

// launch/run of the build, package or bundle that this program is part of: in launch/ or
// share/plumbline/launch/ of a folder around it. Throws Error(unavailable) if there is none.
std::filesystem::path find_launch_run();

// Throws Error(bad_data) with `file` and the sentence of launch/run if it can't start runs of a sweep on its
// hosts. It starts nothing.
void check_hosts(const SweepPlan& plan, const std::string& file);

}  // namespace plumb
