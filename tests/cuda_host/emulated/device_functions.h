// Atomics, memory accesses with cache hints, and nvcc's arithmetic, by their CUDA names (CUDA C++ Programming
// Guide, "C++ Language Extensions"; CUDA Math API). CUDA's headers provide g++ with the types and most of the
// half-precision arithmetic.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

// Atomics: emulated threads never preempt each other within a function.
template <typename T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  const T old = *address;
  *address = value;
  return old;
}
template <typename T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return atomicExch(address, *address + value);
}
template <typename T>
T atomicSub(T* address, std::type_identity_t<T> value) {
  return atomicExch(address, *address - value);
}
template <typename T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return atomicExch(address, *address < value ? value : *address);
}
template <typename T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return atomicExch(address, value < *address ? value : *address);
}
template <typename T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  return atomicExch(address, *address | value);
}
template <typename T>
T atomicAnd(T* address, std::type_identity_t<T> value) {
  return atomicExch(address, *address & value);
}
template <typename T>
T atomicXor(T* address, std::type_identity_t<T> value) {
  return atomicExch(address, *address ^ value);
}
template <typename T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return *address == expected ? atomicExch(address, value) : *address;
}
inline unsigned atomicInc(unsigned* address, unsigned last) {
  return atomicExch(address, *address >= last ? 0 : *address + 1);
}
inline unsigned atomicDec(unsigned* address, unsigned last) {
  return atomicExch(address, *address == 0 || *address > last ? last : *address - 1);
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}
[[noreturn]] inline void __trap() {
  std::abort();
}

// Loads and stores with a cache hint.
template <typename T>
T __ldg(const T* address) {
  return *address;
}
template <typename T>
T __ldca(const T* address) {
  return *address;
}
template <typename T>
T __ldcg(const T* address) {
  return *address;
}
template <typename T>
T __ldcs(const T* address) {
  return *address;
}
template <typename T>
T __ldlu(const T* address) {
  return *address;
}
template <typename T>
T __ldcv(const T* address) {
  return *address;
}
template <typename T>
void __stwb(T* address, std::type_identity_t<T> value) {
  *address = value;
}
template <typename T>
void __stcg(T* address, std::type_identity_t<T> value) {
  *address = value;
}
template <typename T>
void __stcs(T* address, std::type_identity_t<T> value) {
  *address = value;
}
template <typename T>
void __stwt(T* address, std::type_identity_t<T> value) {
  *address = value;
}

// Bit manipulation.
inline int __popc(unsigned bits) {
  return std::popcount(bits);
}
inline int __popcll(unsigned long long bits) {
  return std::popcount(bits);
}
inline int __clz(int bits) {
  return std::countl_zero(static_cast<unsigned>(bits));
}
inline int __clzll(long long bits) {
  return std::countl_zero(static_cast<unsigned long long>(bits));
}
inline int __ffs(int bits) {
  return bits ? std::countr_zero(static_cast<unsigned>(bits)) + 1 : 0;
}
inline unsigned __brev(unsigned bits) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (bits >> i & 1U) << (31 - i);
  return reversed;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<std::uint64_t>(a) * b >> 32);
}
inline int __mulhi(int a, int b) {
  return static_cast<int>(static_cast<std::int64_t>(a) * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  const std::uint64_t a0 = a & 0xFFFFFFFFU, a1 = a >> 32, b0 = b & 0xFFFFFFFFU, b1 = b >> 32;
  const std::uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
  const std::uint64_t low = (middle & 0xFFFFFFFFU) + a0 * b1;
  return a1 * b1 + (middle >> 32) + (low >> 32);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<std::uint64_t>(high) << 32 | low) << (shift % 32)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(high) << 32 | low) >> (shift % 32));
}
inline int __float_as_int(float value) {
  return std::bit_cast<int>(value);
}
inline unsigned __float_as_uint(float value) {
  return std::bit_cast<unsigned>(value);
}
inline float __int_as_float(int bits) {
  return std::bit_cast<float>(bits);
}
inline float __uint_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}
inline long long __double_as_longlong(double value) {
  return std::bit_cast<long long>(value);
}
inline double __longlong_as_double(long long bits) {
  return std::bit_cast<double>(bits);
}

// Arithmetic. glibc declares some of the double-underscore names itself, hence macros for those.
#define __expf expf
#define __exp10f exp10f
#define __logf logf
#define __log2f log2f
#define __powf powf
#define __sinf sinf
#define __cosf cosf
inline float rsqrtf(float value) {
  return 1 / std::sqrt(value);
}
inline double rsqrt(double value) {
  return 1 / std::sqrt(value);
}
inline float __frsqrt_rn(float value) {
  return 1 / std::sqrt(value);
}
inline float __fsqrt_rn(float value) {
  return std::sqrt(value);
}
inline float __frcp_rn(float value) {
  return 1 / value;
}
inline float __fdividef(float a, float b) {
  return a / b;
}
inline float __fdiv_rn(float a, float b) {
  return a / b;
}
inline float __fadd_rn(float a, float b) {
  return a + b;
}
inline float __fsub_rn(float a, float b) {
  return a - b;
}
inline float __fmul_rn(float a, float b) {
  return a * b;
}
inline float __fmaf_rn(float a, float b, float c) {
  return std::fma(a, b, c);
}
inline float __saturatef(float value) {
  return value > 0 ? (value < 1 ? value : 1) : 0;
}
inline int __float2int_rn(float value) {
  return static_cast<int>(std::nearbyint(value));
}
inline int __float2int_rd(float value) {
  return static_cast<int>(std::floor(value));
}
inline int __float2int_rz(float value) {
  return static_cast<int>(value);
}
inline float __int2float_rn(int value) {
  return static_cast<float>(value);
}
inline float __uint2float_rn(unsigned value) {
  return static_cast<float>(value);
}
inline float __ull2float_rn(unsigned long long value) {
  return static_cast<float>(value);
}
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
using std::isinf;
using std::isnan;

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

// Half-precision functions that CUDA's headers define for nvcc only. Products are exact in fp32, so sums that
// fp32 represents exactly are rounded once.
inline __half __hfma(__half a, __half b, __half c) {
  return __float2half_rn(std::fma(__half2float(a), __half2float(b), __half2float(c)));
}
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return __halves2half2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}
inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  return __float2bfloat16_rn(std::fma(__bfloat162float(a), __bfloat162float(b), __bfloat162float(c)));
}
inline __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  return __halves2bfloat162(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}
inline __half hexp(__half value) {
  return __float2half_rn(std::exp(__half2float(value)));
}
inline __half hsqrt(__half value) {
  return __float2half_rn(std::sqrt(__half2float(value)));
}
