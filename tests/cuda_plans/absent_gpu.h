// GPUs that may be absent, as cuDNN sees them.
#pragma once

#include <optional>
#include <string>

#include "kernels/program/targets.h"

namespace plumb::cuda {

struct AbsentGpu {
  std::string name;    // the driver's name for it
  std::string target;  // its name in targets()
  int multiprocessors = 0;
  int shared_bytes_per_block = 0;  // maximum, by opt-in
  int shared_bytes_reserved = 0;   // per block
  int threads_per_multiprocessor = 0, blocks_per_multiprocessor = 0;
  int clock_khz = 0, memory_clock_khz = 0;
  long l2_bytes = 0;
  std::optional<int> compute_capability;  // if not the target's (then used only for memory and speed)

  DeviceLimits limits() const;
  std::string properties_json() const;
};

// Compute capabilities 7.0 (cuDNN before 9.11), 7.5, 8.0, 8.9, 9.0 and 10.0. Figures: CUDA C++ Programming
// Guide, "Technical Specifications per Compute Capability"; the products' data sheets.
AbsentGpu v100();
AbsentGpu t4();
AbsentGpu a100();
AbsentGpu l40s();
AbsentGpu h200();
AbsentGpu b200();

}  // namespace plumb::cuda
