// How well hot kernels fill a Hopper multiprocessor, from resources and machine code: resident threads and
// bytes in flight.
#pragma once

#include <string>
#include <vector>

#include "tests/cuda_sass/wanted.h"

namespace plumb::sass {

// Resources of a block at compute capability 9.0.
struct BlockShape {
  int threads = 0, registers = 0;  // registers per thread
  int shared_bytes = 0;            // static and dynamic, including the 1024 reserved by the system
};

// Resident blocks per multiprocessor, as counted by cudaOccupancyMaxActiveBlocksPerMultiprocessor. Limits and
// allocation units: CUDA C++ Programming Guide, "Compute Capabilities", and NVIDIA's cuda_occupancy.h. Shared
// memory may use its maximum.
int resident_blocks(const BlockShape& block);

// Little's law: bytes a multiprocessor must have in flight to keep memory busy.
double wanted_bytes_in_flight(double bytes_per_second, double latency_seconds, int multiprocessors);

// A row for each sm_90 kernel with a thread count in the table; for several dtypes, the f16 instance.
std::string figures_table(const std::vector<KernelCode>& kernels, const std::vector<Wanted>& table);

}  // namespace plumb::sass
