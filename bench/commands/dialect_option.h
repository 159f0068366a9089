// How logs are read: options of every command that reads them.
#pragma once

#include <string>

#include "bench/options/option_table.h"
#include "results/analysis/analyze.h"

namespace plumb {

// "auto" or the name of one of dialects(), which its help lists.
OptionSpec dialect_option(std::string& target);
// --warmup and --iters.
OptionSpec warmup_option(WindowChoice& window);
OptionSpec iterations_option(WindowChoice& window);

}  // namespace plumb
