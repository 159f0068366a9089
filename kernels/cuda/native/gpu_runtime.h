// How a kernel is started and finds its dynamic shared memory on a GPU. tests/cuda_host/emulated holds another
// header of this name, with which g++ builds the same .cu files to run on the CPU; the include path chooses.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>

#include "kernels/cuda/check.h"

namespace plumb::gpu {

// The block's dynamic shared memory, 16-byte aligned. Device code only.
template <typename T>
__device__ T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char dynamic_shared_bytes[];
  return reinterpret_cast<T*>(dynamic_shared_bytes);
}

// Tells the compiler that an address which a kernel has read from memory is one of device memory, neither
// shared nor local. Device code only.
template <typename T>
__device__ T* in_device_memory(T* address) {
  __builtin_assume(__isGlobal(address));
  return address;
}

// Seconds x 1e9 on the GPU's own clock, the same on all of its multiprocessors. Device code only.
__device__ inline unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Enqueues kernel(arguments...) on the stream; at most 48 KiB of dynamic shared memory. Throws
// Error(internal) if the launch is refused.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
            Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  cuda::check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

}  // namespace plumb::gpu
