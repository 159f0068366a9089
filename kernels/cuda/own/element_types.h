// The types of stored elements, f32, f16 and bf16, and their conversions, on the host and in kernels.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "kernels/program/instructions/dtype.h"

namespace plumb::cuda {

__host__ __device__ inline float to_float(float value) {
  return value;
}
__host__ __device__ inline float to_float(__half value) {
  return __half2float(value);
}
__host__ __device__ inline float to_float(__nv_bfloat16 value) {
  return __bfloat162float(value);
}

template <typename T>
__host__ __device__ T from_float(float value) {
  if constexpr (std::is_same_v<T, __half>)
    return __float2half(value);
  else if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __float2bfloat16(value);
  else
    return value;
}

// An f32 with `tf32`: the nearest number that has 11 bits, which is what tensor cores read. `value` for other
// types.
template <typename T>
__device__ float as_factor(float value, bool tf32) {
  if constexpr (std::is_same_v<T, float>) {
    if (tf32 && value - value == 0) {  // finite
      unsigned bits;
      memcpy(&bits, &value, sizeof bits);
      bits = (bits + 0x1000U) & ~0x1fffU;
      memcpy(&value, &bits, sizeof bits);
    }
  }
  return value;
}

// Calls body(T{}) with the type that stores `dtype`. Throws std::logic_error for other dtypes.
template <typename Body>
void with_type_of(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::f32:
      return body(float{});
    case DType::f16:
      return body(__half{});
    case DType::bf16:
      return body(__nv_bfloat16{});
    default:
      throw std::logic_error("no CUDA kernel computes with " + std::string(name_of(dtype)));
  }
}

// The same for f16 and bf16. Throws std::logic_error for other dtypes.
template <typename Body>
void with_half_type_of(DType dtype, const Body& body) {
  with_type_of(dtype, [&](auto type) {
    if constexpr (std::is_same_v<decltype(type), float>)
      throw std::logic_error("this CUDA kernel is for half precision");
    else
      body(type);
  });
}

}  // namespace plumb::cuda
