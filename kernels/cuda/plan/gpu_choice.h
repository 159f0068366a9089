// A process's GPU. All but select_gpu() are pure functions: compiled and tested without a GPU.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "kernels/program/targets.h"

namespace plumb::cuda {

struct SelectedGpu {
  GpuProperties properties;
  std::string uuid;            // "GPU-0123…", as nvidia-smi prints it
  std::string description;     // "NVIDIA H200 (sm_90), driver for CUDA 13.0"
  std::size_t free_bytes = 0;  // after creating the context, before any allocation
};

// Makes the GPU with the number local_rank, modulo the number of visible ones, this thread's current device.
// The count doesn't show whether ranks share a GPU: a launcher may show every rank the same GPUs, or each its
// own (CUDA_VISIBLE_DEVICES). Ranks compare UUIDs for that (comm/distinct_gpus.h). Throws Error(unavailable)
// if no driver or GPU responds or the build holds no code for it.
SelectedGpu select_gpu(int local_rank);

// "13.2" for 13020, as CUDA writes versions.
std::string version_text(int version);

// A sentence with the remedy for a process that sees no GPU. `cuda_error`: CUDA's words, empty if it counts
// none. `driver`: the newest CUDA that the driver runs, 0 without a driver; `runtime`: the CUDA of this
// program. A driver runs programs of its own major version and of earlier ones (CUDA Compatibility, "Minor
// Version Compatibility").
std::string why_no_gpu(const std::string& cuda_error, int driver, int runtime);

// Whether a GPU of this capability runs a binary built for `list`, in the form of CMAKE_CUDA_ARCHITECTURES,
// separated by commas or semicolons: "80" is machine code and PTX, "80-real" machine code, "80-virtual" PTX;
// "90a" and "100f" (code for its own family only) are machine code. Machine code for compute capability x.y
// runs on x.z with z >= y. The driver compiles PTX for its own capability and any later one (CUDA C++
// Programming Guide, "Binary Compatibility" and "PTX Compatibility"). Throws Error(internal) for other text.
bool runs_on(int compute_capability, std::string_view list);

// Throws Error(unavailable) with the binary's architectures if it doesn't run. `gpu_name` is for the message.
void require_architecture(int compute_capability, std::string_view list, const std::string& gpu_name);

}  // namespace plumb::cuda
