// Configuration of the emulated GPUs, from the environment.
#pragma once

#include <cstddef>
#include <string>

namespace plumb::gpu::emulated {

struct EmulatedGpus {
  int count = 1;                                     // EMULATED_GPUS
  int capability = 90;                               // EMULATED_GPU_CAPABILITY: 75, 80, 90, …
  std::size_t memory_bytes = std::size_t{16} << 30;  // EMULATED_GPU_MEMORY
  std::string name = "Emulated GPU";                 // EMULATED_GPU_NAME
  bool same_uuid = false;                            // EMULATED_GPU_SAME_UUID=1: all report the same UUID
};
const EmulatedGpus& emulated_gpus();  // read once

}  // namespace plumb::gpu::emulated
