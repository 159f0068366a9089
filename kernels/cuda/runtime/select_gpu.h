// Selects this process's GPU and reports the driver's information about it.
#pragma once

#include <string>

#include "kernels/device.h"
#include "kernels/program/targets.h"

namespace plumb::cuda {

struct SelectedGpu {
  int index = 0;  // among the visible ones
  GpuProperties properties;
  std::string uuid;            // "GPU-0123…", as nvidia-smi prints it
  std::string description;     // "NVIDIA H200 (sm_90), driver for CUDA 13.0"
  std::size_t free_bytes = 0;  // after creating the context, before any allocation
};

// Makes it this thread's current device. Throws Error(unavailable) if no driver or GPU responds or the build
// holds no code for it, Error(usage) if there are more ranks than GPUs.
SelectedGpu select_gpu(const DeviceOptions& options);

}  // namespace plumb::cuda
