// How far hot kernels fill a Hopper multiprocessor, told from resources and machine code: threads that reside
// there at once and bytes that they have on their way.
#pragma once

#include <string>
#include <vector>

#include "tests/cuda_sass/wanted.h"

namespace plumb::sass {

// What a block takes on a GPU of compute capability 9.0.
struct BlockShape {
  int threads = 0, registers = 0;  // registers of a thread
  int shared_bytes = 0;            // static and dynamic, with the 1024 that the system takes
};

// Blocks that reside on one multiprocessor: as cudaOccupancyMaxActiveBlocksPerMultiprocessor counts them, for
// limits and units of allocation see the CUDA C++ Programming Guide, "Compute Capabilities", and NVIDIA's
// cuda_occupancy.h. Shared memory may take all that it can.
int resident_blocks(const BlockShape& block);

// Little's law: the bytes that a multiprocessor must have on their way to keep memory busy.
double wanted_bytes_in_flight(double bytes_per_second, double latency_seconds, int multiprocessors);

// A row for each kernel of sm_90 that the table has threads for; of those for several dtypes the f16 one.
std::string figures_table(const std::vector<KernelCode>& kernels, const std::vector<Wanted>& table);

}  // namespace plumb::sass
