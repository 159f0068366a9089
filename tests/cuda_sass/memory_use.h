// How a kernel reaches global and local memory where it spends its time, told from its machine code alone.
#pragma once

#include <string>
#include <vector>

#include "tests/cuda_sass/kernel_code.h"

namespace plumb::sass {

// One instruction that loads or stores. Shared memory is none of our business.
struct Access {
  bool loads = false;
  bool local =
      false;      // of the thread: LDL, STL; else global: LDG, STG, or LD, ST with an address of any kind
  int bytes = 0;  // per thread
};

struct MemoryUse {
  std::vector<std::vector<Access>> main;  // of each main part, the one with the most bytes first
  bool main_is_loop = false;
  // The most that a thread has asked global memory for before it waits for any of it: over all ways through
  // two rounds of the first main part, where a load is waited for by the first instruction that names a
  // register of its, together with all loads in front of it.
  int bytes_in_flight = 0, loads_in_flight = 0;
};

// The main parts are the innermost loops with 16-byte accesses of global memory, or, where no loop has any,
// all that is outside of loops.
MemoryUse memory_use(const KernelCode& kernel);

}  // namespace plumb::sass
