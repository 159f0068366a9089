// `plumbline report`: measured runs as one page.
#pragma once

#include "bench/options/option_table.h"

namespace plumb {

OptionTable report_table();
int report_command(int argc, const char* const* argv);

}  // namespace plumb
