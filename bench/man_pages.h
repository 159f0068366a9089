// Manual pages of the programs that train.
#pragma once

#include <string>

#include "base/options/man_page.h"

namespace plumb {

ManPage bench_man_page(const OptionTable& table, const std::string& purpose);
ManPage allreduce_man_page(const OptionTable& table);
ManPage make_rec_man_page(const OptionTable& table);

}  // namespace plumb
