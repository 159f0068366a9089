// Reads and writes of f32, f16 or bf16 elements: 16 bytes per access, arithmetic in f32. For .cu files only.
#pragma once

#include <gpu_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/own/element_types.h"
#include "kernels/cuda/plan/blocks.h"
#include "kernels/program/instructions/dtype.h"

namespace plumb::cuda {

// Elements per 16-byte access.
template <typename T>
inline constexpr int kPack = 16 / static_cast<int>(sizeof(T));

// Elements per thread of a pass over a tensor: 16 bytes of a half type, 32 of f32.
inline constexpr int kPerThread = 8;

// Raw storage, moved in one access or in several of 16 bytes.
template <typename T, int kCount>
struct alignas(kCount * sizeof(T) < 16 ? kCount * sizeof(T) : 16) Elements {
  T at[kCount];
};

template <typename T, int kCount>
__device__ void convert(const Elements<T, kCount>& held, float (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = to_float(held.at[i]);
}

// kCount contiguous elements (a power of 2). The address is a multiple of their bytes, at most of 16.
template <int kCount, typename T>
__device__ void load(const T* from, float (&values)[kCount]) {
  const auto held = *reinterpret_cast<const Elements<T, kCount>*>(from);
  convert(held, values);
}

template <int kCount, typename T>
__device__ void store(T* to, const float (&values)[kCount]) {
  Elements<T, kCount> held;
#pragma unroll
  for (int i = 0; i < kCount; ++i) held.at[i] = from_float<T>(values[i]);
  *reinterpret_cast<Elements<T, kCount>*>(to) = held;
}

// The same at the end of a tensor: only the first `count` elements exist; the others read as 0.
template <int kCount, typename T>
__device__ void load_first(const T* from, std::int64_t count, float (&values)[kCount]) {
  if (count >= kCount) return load<kCount>(from, values);
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = i < count ? to_float(from[i]) : 0.0F;
}

// kCount elements as stored, in 32-bit words: a half type needs half the registers of its f32 values.
template <typename T, int kCount>
struct alignas(kCount * sizeof(T) < 16 ? kCount * sizeof(T) : 16) Packed {
  unsigned words[kCount * sizeof(T) / sizeof(unsigned)];

  __device__ float at(int i) const {
    if constexpr (std::is_same_v<T, float>) {
      return as_float(words[i]);
    } else {
      const unsigned pair = words[i / 2];
      if constexpr (std::is_same_v<T, __nv_bfloat16>)  // the upper half of an f32
        return as_float(i % 2 == 0 ? pair << 16 : pair & 0xffff0000U);
      else
        return to_float(__ushort_as_half(static_cast<unsigned short>(i % 2 == 0 ? pair : pair >> 16)));
    }
  }

 private:
  __device__ static float as_float(unsigned word) {
    float value;
    memcpy(&value, &word, sizeof(value));
    return value;
  }
};
template <int kCount, typename T>
__device__ Packed<T, kCount> load_packed(const T* from) {
  return *reinterpret_cast<const Packed<T, kCount>*>(from);
}

template <typename T>
__host__ __device__ T* as(std::byte* address) {
  return reinterpret_cast<T*>(address);
}
template <typename T>
__host__ __device__ const T* as(const std::byte* address) {
  return reinterpret_cast<const T*>(address);
}

}  // namespace plumb::cuda
