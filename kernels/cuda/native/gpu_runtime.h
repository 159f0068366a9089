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

// Whether the code is compiled for sm_90a, which has products of warpgroups (CMakeLists.txt). Kernels with
// them are compiled for other GPUs without them, and never started there.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
inline constexpr bool kMultipliesWarpgroups = true;
#else
inline constexpr bool kMultipliesWarpgroups = false;
#endif

// As load_transposed_matrices(), the other way (PTX ISA, "stmatrix"): lane l gives the address of row l % 8
// of matrix l / 8, which gets a column's elements. Device code only, as all that follows, for sm_90a.
__device__ inline void store_transposed_matrices(void* row, const unsigned (&from)[4]) {
  if constexpr (kMultipliesWarpgroups)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     static_cast<unsigned>(__cvta_generic_to_shared(row))),
                 "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
                 : "memory");
}

// Counts the calling warp at a barrier, 1 to 15, until so many threads have come: meet() waits for them, and
// sees what they wrote before; arrive() goes on.
__device__ inline void meet(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ inline void arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// Products of warpgroups, each of 128 threads whose first is a multiple of 128 (PTX ISA, "Asynchronous
// Warpgroup Level Matrix Instructions"). A matrix lies in shared memory in eights of 16-byte chunks, 128
// bytes: 8 lines of 8 elements of depth, or 8 of depth with 8 lines each. The two eights of a product's depth
// are leading_bytes apart, eights of lines stride_bytes; or with lines adjacent ("MN-major") likewise. The
// address is a multiple of 16 bytes. This is its descriptor, of which the lowest bits are the address / 16.
__device__ inline std::uint64_t matrix_at(const void* first, int leading_bytes, int stride_bytes) {
  const auto field = [](unsigned bytes) { return static_cast<std::uint64_t>((bytes & 0x3FFFFU) >> 4); };
  return field(static_cast<unsigned>(__cvta_generic_to_shared(first))) |
         field(static_cast<unsigned>(leading_bytes)) << 16 | field(static_cast<unsigned>(stride_bytes)) << 32;
}

// Shows products what the thread has stored or copied to shared memory, once a barrier follows.
__device__ inline void share_with_products() {
  if constexpr (kMultipliesWarpgroups) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Comes before the first product, and again once the sums were read or written.
__device__ inline void begin_products() {
  if constexpr (kMultipliesWarpgroups) asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
// Keeps the compiler from writing sums after a begin_products() that follows.
template <int kCount>
__device__ void keep_in_order(float (&sums)[kCount]) {
#pragma unroll
  for (float& sum : sums) asm volatile("" : "+f"(sum)::"memory");
}
// The products since the last call become a group. Waits for all groups but the kOpen last ones: until then
// they read shared memory, and their sums are not to be touched.
__device__ inline void end_product_group() {
  if constexpr (kMultipliesWarpgroups) asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kOpen>
__device__ void wait_for_product_groups() {
  if constexpr (kMultipliesWarpgroups)
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kOpen) : "memory");
}

inline constexpr int kWarpgroupSums = 116;  // of a thread: 64 rows of 232 columns

#define PLUMB_FOUR_SUMS(i) "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3])
#define PLUMB_SIXTEEN_SUMS(i) \
  PLUMB_FOUR_SUMS(i), PLUMB_FOUR_SUMS(i + 4), PLUMB_FOUR_SUMS(i + 8), PLUMB_FOUR_SUMS(i + 12)
#define PLUMB_MULTIPLY_WARPGROUP(type)                                                                 \
  asm volatile(                                                                                        \
      "{.reg .pred adds; setp.ne.b32 adds, %118, 0; "                                                  \
      "wgmma.mma_async.sync.aligned.m64n232k16.f32." type "." type                                     \
      " {"                                                                                             \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                         \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "               \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "               \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "               \
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "               \
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "               \
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "   \
      "%112, %113, %114, %115"                                                                         \
      "}, %116, %117, adds, 1, 1, %119, 0;}"                                                           \
      : PLUMB_SIXTEEN_SUMS(0), PLUMB_SIXTEEN_SUMS(16), PLUMB_SIXTEEN_SUMS(32), PLUMB_SIXTEEN_SUMS(48), \
        PLUMB_SIXTEEN_SUMS(64), PLUMB_SIXTEEN_SUMS(80), PLUMB_SIXTEEN_SUMS(96), PLUMB_FOUR_SUMS(112)   \
      : "l"(a), "l"(b), "r"(static_cast<int>(adds)), "n"(kTransposed ? 1 : 0))

// sums [64, 232] = or with `adds` += a [64, 16] b [16, 232], a and b of T = __half or __nv_bfloat16, sums in
// f32. b's depth is adjacent in memory, a's too or, transposed, its lines are. Thread t has of rows
// t / 32 * 16 + t % 32 / 4 and 8 more, in turn, columns 8 * j + t % 4 * 2 and the next, for every j.
template <typename T, bool kTransposed>
__device__ void multiply_warpgroup(float (&sums)[kWarpgroupSums], std::uint64_t a, std::uint64_t b,
                                   bool adds) {
  if constexpr (!kMultipliesWarpgroups)
    __trap();
  else if constexpr (std::is_same_v<T, __half>)
    PLUMB_MULTIPLY_WARPGROUP("f16");
  else
    PLUMB_MULTIPLY_WARPGROUP("bf16");
}
#undef PLUMB_MULTIPLY_WARPGROUP

inline constexpr int kSquareSums = 32;  // of a thread: 64 rows of 64 columns

#define PLUMB_MULTIPLY_WARPGROUP(type)                                                 \
  asm volatile(                                                                        \
      "{.reg .pred adds; setp.ne.b32 adds, 1, 0; "                                     \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                      \
      " {"                                                                             \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "         \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31" \
      "}, {%32, %33, %34, %35}, %36, adds, 1, 1, 1;}"                                  \
      : PLUMB_SIXTEEN_SUMS(0), PLUMB_SIXTEEN_SUMS(16)                                  \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))

// sums [64, 64] += a [64, 16] b [16, 64]. A warp's lanes have its 16 rows of a as load_matrices() loads
// those of multiply_add(); they are not to be written before the product has ended. b's columns are adjacent
// in memory.
template <typename T>
__device__ void multiply_warpgroup(float (&sums)[kSquareSums], const unsigned (&a)[4], std::uint64_t b) {
  if constexpr (!kMultipliesWarpgroups)
    __trap();
  else if constexpr (std::is_same_v<T, __half>)
    PLUMB_MULTIPLY_WARPGROUP("f16");
  else
    PLUMB_MULTIPLY_WARPGROUP("bf16");
}
#undef PLUMB_MULTIPLY_WARPGROUP

inline constexpr int kWideSums = 64;  // of a thread: 64 rows of 128 columns

#define PLUMB_MULTIPLY_WARPGROUP(type)                                                                \
  asm volatile(                                                                                       \
      "{.reg .pred adds; setp.ne.b32 adds, 1, 0; "                                                    \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type                                    \
      " {"                                                                                            \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                        \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "              \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "              \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"                \
      "}, %64, %65, adds, 1, 1, 0, 1;}"                                                               \
      : PLUMB_SIXTEEN_SUMS(0), PLUMB_SIXTEEN_SUMS(16), PLUMB_SIXTEEN_SUMS(32), PLUMB_SIXTEEN_SUMS(48) \
      : "l"(a), "l"(b))

// sums [64, 128] += a [64, 16] b [16, 128]. a's depth and b's columns are adjacent in memory.
template <typename T>
__device__ void multiply_warpgroup(float (&sums)[kWideSums], std::uint64_t a, std::uint64_t b) {
  if constexpr (!kMultipliesWarpgroups)
    __trap();
  else if constexpr (std::is_same_v<T, __half>)
    PLUMB_MULTIPLY_WARPGROUP("f16");
  else
    PLUMB_MULTIPLY_WARPGROUP("bf16");
}
#undef PLUMB_MULTIPLY_WARPGROUP
#undef PLUMB_SIXTEEN_SUMS
#undef PLUMB_FOUR_SUMS

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
