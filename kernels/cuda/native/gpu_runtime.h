// How a kernel is started and finds its dynamic shared memory on a GPU. tests/cuda_host/emulated holds
// another header of this name, with which g++ builds the same .cu files to run on the CPU; the include path
// chooses.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/runtime/check.h"

namespace plumb::gpu {

inline constexpr std::size_t kSharedBytes = 48 << 10;  // of a block; for more a kernel has to ask

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

// Whether the code is compiled for a GPU with asynchronous copies and products of 16x8x16 halves (compute
// capability 8.0). For older ones the kernels are compiled without both; no Program has them there.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr bool kFeedsTensorCores = false;
#else
inline constexpr bool kFeedsTensorCores = true;
#endif

// Starts to copy 16 bytes from device into shared memory, or fills them with 0 if not `there`; past the
// registers. wait_for_copies() waits for all that the thread has started. Device code only, from compute
// capability 8.0.
__device__ inline void copy_to_shared(void* into, const void* from, bool there) {
  if constexpr (kFeedsTensorCores)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     static_cast<unsigned>(__cvta_generic_to_shared(into))),
                 "l"(from), "r"(there ? 16 : 0)
                 : "memory");
}
__device__ inline void wait_for_copies() {
  if constexpr (kFeedsTensorCores) asm volatile("cp.async.wait_all;" ::: "memory");
}

// Copies that the thread has started since the last call become a group, perhaps an empty one. Waits for all
// groups but the kOpen last ones.
__device__ inline void end_copy_group() {
  if constexpr (kFeedsTensorCores) asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kOpen>
__device__ void wait_for_copy_groups() {
  if constexpr (kFeedsTensorCores) asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
}

// Four matrices of 8x8 halves from shared memory (PTX ISA, "ldmatrix"): lane l gives the address of row l % 8
// of matrix l / 8, and gets elements 2 * (l % 4) and the next of row l / 4 of each, or with `transposed` of
// column l / 4. All lanes of a warp call it. Device code only.
__device__ inline void load_matrices(unsigned (&into)[4], const void* row) {
  if constexpr (kFeedsTensorCores)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(into[0]), "=r"(into[1]), "=r"(into[2]), "=r"(into[3])
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
                 : "memory");
}
__device__ inline void load_transposed_matrices(unsigned (&into)[4], const void* row) {
  if constexpr (kFeedsTensorCores)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(into[0]), "=r"(into[1]), "=r"(into[2]), "=r"(into[3])
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
                 : "memory");
}

// sums [16, 8] += a [16, 16] b [16, 8] on tensor cores, a and b of T = __half or __nv_bfloat16, sums in f32
// (PTX ISA, "mma.m16n8k16": which lane has what). All lanes of a warp call it. Device code only, from compute
// capability 8.0.
template <typename T>
__device__ void multiply_add(float (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  if constexpr (!kFeedsTensorCores)
    __trap();
  else if constexpr (std::is_same_v<T, __half>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Enqueues kernel(arguments...) on the stream. Throws Error(internal) if the launch is refused.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            cudaStream_t stream, Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  if (shared_bytes > kSharedBytes)
    cuda::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(shared_bytes)));
  cuda::check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

}  // namespace plumb::gpu
