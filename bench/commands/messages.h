// Messages of a command, beside its result.
#pragma once

#include <string>
#include <vector>

#include "results/analysis/log_tree.h"

namespace plumb {

// Notes and what was left out, to stderr: on a terminal 20 lines, elsewhere 4, with `verbose` all.
void print_messages(const std::vector<std::string>& notes, const std::vector<BadFile>& left_out,
                    bool verbose);

}  // namespace plumb
