#pragma once

#include <cuda_runtime_api.h>

#include <source_location>

namespace plumb::cuda {

// Throws Error: out_of_memory for cudaErrorMemoryAllocation, unavailable without a driver or GPU, internal
// otherwise. The message holds the call site and the runtime's error text.
void check(cudaError_t status, std::source_location where = std::source_location::current());

}  // namespace plumb::cuda
