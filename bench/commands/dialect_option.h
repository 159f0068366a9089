// --dialect, of every command that reads logs.
#pragma once

#include <string>

#include "bench/options/option_table.h"

namespace plumb {

// "auto" or the name of one of dialects(), which its help lists.
OptionSpec dialect_option(std::string& target);

}  // namespace plumb
