#pragma once

#include <cuda_runtime_api.h>

#include <source_location>

namespace plumb::cuda {

// Throws Error: out_of_memory for cudaErrorMemoryAllocation, unavailable where there is no driver or GPU,
// internal otherwise. The sentence holds the place of the call and the runtime's own words.
void check(cudaError_t status, std::source_location where = std::source_location::current());

}  // namespace plumb::cuda
