// How a kernel's hot code accesses global and local memory, from its machine code alone.
#pragma once

#include <vector>

#include "tests/cuda_sass/kernel_code.h"

namespace plumb::sass {

// A load or store. Shared memory isn't considered.
struct Access {
  bool loads = false;
  bool local = false;  // local memory: LDL, STL; else global: LDG, STG, or generic LD, ST
  int bytes = 0;       // per thread
};

struct MemoryUse {
  std::vector<std::vector<Access>> main;  // per main part, the one with the most bytes first
  bool main_is_loop = false;
  // The most a thread has requested from global memory before it waits for any of it, over all paths through
  // two iterations of the first main part. A load is waited for by the first instruction that names one of
  // its registers, together with all earlier loads.
  int bytes_in_flight = 0, loads_in_flight = 0;
};

// Main parts are the innermost loops with 16-byte accesses of global memory; if no loop has any, all code
// outside loops.
MemoryUse memory_use(const KernelCode& kernel);

}  // namespace plumb::sass
