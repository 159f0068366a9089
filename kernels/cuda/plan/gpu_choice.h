// Chooses a rank's GPU among the visible ones, and checks that a binary holds code for it. Pure functions:
// compiled and tested without a GPU.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumb::cuda {

// "13.2" for 13020, as CUDA writes versions.
std::string version_text(int version);

// A sentence with the remedy for a process that sees no GPU. `cuda_error`: CUDA's words, empty if it counts
// none. `driver`: the newest CUDA that the driver runs, 0 without a driver; `runtime`: the CUDA of this
// program. A driver runs programs of its own major version and of earlier ones (CUDA Compatibility, "Minor
// Version Compatibility").
std::string why_no_gpu(const std::string& cuda_error, int driver, int runtime);

// Index of this rank's GPU among those visible to the process: local_rank modulo visible_gpus. The count
// doesn't show whether ranks share a GPU: a launcher may show every rank the same GPUs, or each its own
// (CUDA_VISIBLE_DEVICES). Ranks compare UUIDs for that (comm/distinct_gpus.h). Throws Error(unavailable) if
// none is visible.
int choose_gpu(int visible_gpus, int local_rank);

// One architecture of a binary. Machine code for compute capability x.y runs on x.z with z >= y. The driver
// compiles PTX for its own capability and any later one. Source: CUDA C++ Programming Guide, "Binary
// Compatibility" and "PTX Compatibility".
struct BuiltArchitecture {
  int compute_capability = 0;  // 90 for sm_90
  bool machine_code = false;
  bool ptx = false;
};

// Parses CMAKE_CUDA_ARCHITECTURES, separated by commas or semicolons: "80" is both kinds, "80-real" machine
// code, "80-virtual" PTX; "90a" and "100f" (code for its own family only) are machine code. Throws
// Error(internal) for other text.
std::vector<BuiltArchitecture> parse_architectures(std::string_view list);

// Whether a GPU of this capability runs a binary built for `list`.
bool runs_on(int compute_capability, std::string_view list);

// Throws Error(unavailable) with the binary's architectures if it doesn't run. `gpu_name` is for the message.
void require_architecture(int compute_capability, std::string_view list, const std::string& gpu_name);

// Architectures of this program's kernels, in that form: from architectures.cpp (nvcc) or
// tests/cuda_host/architectures.cpp.
std::string_view built_architectures();

}  // namespace plumb::cuda
