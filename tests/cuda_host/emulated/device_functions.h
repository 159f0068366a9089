// Atomics and nvcc's arithmetic that kernels use, by their CUDA names (CUDA C++ Programming Guide, "C++
// Language Extensions"; CUDA Math API). CUDA's headers provide g++ with the types and the half-precision
// arithmetic.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

// Atomics: emulated threads never preempt each other within a function.
template <typename T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return std::exchange(*address, *address + value);
}
inline unsigned atomicInc(unsigned* address, unsigned last) {
  return std::exchange(*address, *address >= last ? 0 : *address + 1);
}
inline void __threadfence_block() {}

#define __expf expf  // glibc declares __expf itself

template <typename A, typename B>
requires(std::is_arithmetic_v<A>&& std::is_arithmetic_v<B>) constexpr std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
}
template <typename A, typename B>
requires(std::is_arithmetic_v<A>&& std::is_arithmetic_v<B>) constexpr std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}
using std::isfinite;

// Conversions by the compiler, in one instruction where the CPU has it: CUDA's headers have g++ count bits.
inline float __emulated_half2float(__half value) {
  _Float16 held;
  std::memcpy(&held, static_cast<const void*>(&value), sizeof(held));
  return static_cast<float>(held);
}
inline __half __emulated_float2half(float value) {
  const auto rounded = static_cast<_Float16>(value);
  __half held;
  std::memcpy(static_cast<void*>(&held), &rounded, sizeof(held));
  return held;
}
#define __half2float __emulated_half2float
#define __float2half __emulated_float2half
