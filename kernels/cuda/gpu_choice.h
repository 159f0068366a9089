// Which of the visible GPUs a rank takes, and whether a binary holds code for it. Pure functions: compiled
// and tested without a GPU.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumb::cuda {

// Index of the GPU that the rank with this place on its host takes, among those that this process sees:
// local_rank modulo visible_gpus. A rank can't know from its own count whether it shares that GPU: a launcher
// may show each rank the same GPUs, or to each its own one (CUDA_VISIBLE_DEVICES). Ranks compare UUIDs for
// that (comm/distinct_gpus.h). Throws Error(unavailable) if none is visible.
int choose_gpu(int visible_gpus, int local_rank);

// One architecture of a binary. Machine code for compute capability x.y runs on x.z with z >= y, PTX is
// compiled by the driver for any capability from its own on.
// Source: CUDA C++ Programming Guide, "Binary Compatibility" and "PTX Compatibility".
struct BuiltArchitecture {
  int compute_capability = 0;  // 90 for sm_90
  bool machine_code = false;
  bool ptx = false;
};

// From what CMAKE_CUDA_ARCHITECTURES holds, separated by commas or semicolons: "80" is both kinds,
// "80-real" machine code, "80-virtual" PTX; "90a" and "100f" (code that only runs on its own family) are
// machine code. Throws Error(internal) for other text.
std::vector<BuiltArchitecture> parse_architectures(std::string_view list);

// Whether a GPU of this capability runs a binary built for `list`.
bool runs_on(int compute_capability, std::string_view list);

// Throws Error(unavailable) unless it does, with what the binary holds. `gpu_name` for the sentence.
void require_architecture(int compute_capability, std::string_view list, const std::string& gpu_name);

// What this program's kernels are built for, in that form: one of architectures.cpp (nvcc) and
// tests/cuda_host/architectures.cpp.
std::string_view built_architectures();

}  // namespace plumb::cuda
