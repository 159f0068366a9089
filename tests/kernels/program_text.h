// A described Program as lines of text, for golden files.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/program/program.h"

namespace plumb {

// A line per buffer and per instruction, in order, of those whose name `keeps` accepts. Momentum is as
// its parameter.
std::vector<std::string> program_lines(const Program& program,
                                       const std::function<bool(std::string_view)>& keeps);

}  // namespace plumb
