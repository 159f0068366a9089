// In place of nvml_counters.cpp where NVML's header is missing.
#include "base/machine/nvml.h"

namespace plumb {

void add_nvml_counters(void* /*library*/, void* /*gpu*/, std::map<std::string, std::int64_t>& /*counters*/) {}

}  // namespace plumb
