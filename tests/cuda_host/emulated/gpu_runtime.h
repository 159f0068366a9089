// An emulated GPU for tests: gives g++ what kernels/cuda/native/gpu_runtime.h and nvcc give the .cu files.
// Kernels are ordinary functions; block.h runs them thread by thread.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <tuple>
#include <type_traits>

#include "kernels/cuda/runtime/check.h"
#include "tests/cuda_host/emulated/block.h"
#include "tests/cuda_host/emulated/device_functions.h"
#include "tests/cuda_host/emulated/matrix_functions.h"
#include "tests/cuda_host/emulated/warp_functions.h"

// Outside nvcc, CUDA's headers define __global__, __device__ and the like as nothing.
#undef __shared__
#define __shared__ static  // blocks run one at a time, so one copy per kernel suffices
#define __launch_bounds__(...)
#define threadIdx (::plumb::gpu::emulated::place.thread)
#define blockIdx (::plumb::gpu::emulated::place.block)
#define blockDim (::plumb::gpu::emulated::place.block_size)
#define gridDim (::plumb::gpu::emulated::place.grid_size)
#define warpSize 32

namespace plumb::gpu {

namespace emulated {
// Checks the launch configuration as the driver would. A launch on the null stream runs at once and throws
// Error(internal) if the kernel fails; on other streams it runs when somebody waits.
cudaError_t enqueue_kernel(cudaStream_t stream, dim3 grid, dim3 block, std::size_t shared_bytes,
                           std::function<void()> body);
}  // namespace emulated

template <typename T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(emulated::block().shared());
}

template <typename T>
T* in_device_memory(T* address) {
  return address;
}

inline unsigned increment_in_order(unsigned* address, unsigned last) {
  return atomicInc(address, last);
}

inline float load_one_from_l2(const float* address) {
  return *address;
}
inline float4 load_from_l2(const float* address) {
  return *reinterpret_cast<const float4*>(address);
}

inline unsigned long long nanoseconds() {
  return emulated::clock_nanoseconds();
}

// Nobody may read what was copied before wait_for_copies(): the last moment at which it may arrive.
inline void copy_to_shared(void* into, const void* from, bool there) {
  emulated::start_copy(into, from, there);
}
inline void wait_for_copies() {
  emulated::finish_copies();
}
inline void end_copy_group() {
  emulated::end_copy_group();
}
template <int kOpen>
void wait_for_copy_groups() {
  emulated::finish_copy_groups(kOpen);
}

inline void load_matrices(unsigned (&into)[4], const void* row,
                          std::source_location at = std::source_location::current()) {
  emulated::load_matrices(into, row, false, at);
}
inline void load_transposed_matrices(unsigned (&into)[4], const void* row,
                                     std::source_location at = std::source_location::current()) {
  emulated::load_matrices(into, row, true, at);
}
template <typename T>
void multiply_add(float (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                  std::source_location at = std::source_location::current()) {
  emulated::multiply_add(sums, a, b0, b1, std::is_same_v<T, __nv_bfloat16>, at);
}

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            cudaStream_t stream, Arguments... arguments) {
  std::tuple<Parameters...> values(static_cast<Parameters>(arguments)...);
  cuda::check(emulated::enqueue_kernel(stream, grid, block, shared_bytes,
                                       [kernel, values] { std::apply(kernel, values); }));
}

}  // namespace plumb::gpu
