// GPUs that need not be there, as cuDNN reads them.
#pragma once

#include <string>

#include "kernels/targets.h"

namespace plumb::cuda {

struct AbsentGpu {
  std::string name;    // as the driver calls it
  std::string target;  // as targets() does
  int multiprocessors = 0;
  int shared_bytes_per_block = 0;  // at most, by option
  int shared_bytes_reserved = 0;   // of each block
  int threads_per_multiprocessor = 0, blocks_per_multiprocessor = 0;
  int clock_khz = 0, memory_clock_khz = 0;
  long l2_bytes = 0;

  DeviceLimits limits() const { return *find_target(target); }
  std::string properties_json() const;
};

// Compute capabilities 7.5, 8.0 and 9.0. Figures: CUDA C++ Programming Guide, "Technical Specifications per
// Compute Capability"; the products' data sheets.
AbsentGpu t4();
AbsentGpu a100();
AbsentGpu h200();

}  // namespace plumb::cuda
