// How a kernel is started and finds its dynamic shared memory on a GPU. tests/cuda_host/emulated holds
// another header of this name, with which g++ builds the same .cu files to run on the CPU; the include path
// chooses.
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

// atomicInc() that orders memory: what the block stored before a barrier in front of the call is visible to
// the blocks whose calls come later, behind a barrier that follows theirs. Device code only.
__device__ inline unsigned increment_in_order(unsigned* address, unsigned last) {
  unsigned old;
  asm volatile("atom.acq_rel.gpu.inc.u32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(last) : "memory");
  return old;
}

// Floats that other blocks may have stored during this launch: from the L2 cache, as the L1 cache may hold
// older ones. Device code only.
__device__ inline float load_one_from_l2(const float* address) {
  float one;
  asm volatile("ld.cg.f32 %0, [%1];" : "=f"(one) : "l"(address) : "memory");
  return one;
}
__device__ inline float4 load_from_l2(const float* address) {
  float4 four;
  asm volatile("ld.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
               : "l"(address)
               : "memory");
  return four;
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
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            cudaStream_t stream, Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  cuda::check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

}  // namespace plumb::gpu
