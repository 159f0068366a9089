// Logs that commands read: the options of how, and messages on what was left out.
#pragma once

#include <string>
#include <vector>

#include "bench/options/option_table.h"
#include "results/analysis/analyze.h"

namespace plumb {

// "auto" or the name of one of dialects(), which its help lists.
OptionSpec dialect_option(std::string& target);
// --warmup and --iters.
OptionSpec warmup_option(WindowChoice& window);
OptionSpec iterations_option(WindowChoice& window);

// "plumbline: …" to stderr.
void say(const std::string& line);
// Notes and what was left out, to stderr: on a terminal 20 lines, elsewhere 4, with `verbose` all.
void print_messages(const std::vector<std::string>& notes, const std::vector<BadFile>& left_out,
                    bool verbose);

}  // namespace plumb
