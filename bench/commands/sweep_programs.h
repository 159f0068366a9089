// Questions of a sweep to the bench programs, answered without starting one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launch/sweep_plan.h"

namespace plumb {

// Reads the arguments as the program would. Throws Error(usage) as it does; a library that this program lacks
// and the other may have is no mistake.
RunLength check_options(const std::string& program, const std::vector<std::string>& arguments);

// The least time that the runs whose index is in `open` can take on a device that find_target() knows: their
// iterations at the roofline, without start and end. With an empty name a target must be named by the options
// (device=cpu). Nothing if it isn't, or can't do a precision.
std::optional<double> least_seconds(const SweepPlan& plan, const std::vector<std::size_t>& open,
                                    const std::string& target);

// The folder that this program lies in.
std::filesystem::path folder_of_this_program();

}  // namespace plumb
