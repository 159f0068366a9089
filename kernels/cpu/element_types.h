// The types of stored elements, f32 and bf16, and their conversions. Loops compute in fp32.
#pragma once

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "kernels/program/instructions/dtype.h"

namespace plumb::cpu {

// The upper half of an fp32.
struct Bf16 {
  std::uint16_t bits = 0;
  bool operator==(const Bf16&) const = default;
};

inline float to_float(float value) {
  return value;
}
inline float to_float(Bf16 value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

// To nearest even; NaNs become quiet.
template <typename T>
T from_float(float value) {
  if constexpr (std::is_same_v<T, Bf16>) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
    return {static_cast<std::uint16_t>((value == value ? rounded : bits | 0x400000) >> 16)};
  } else {
    return value;
  }
}

// Calls body(T{}) with the type that stores `dtype`. Throws std::logic_error for other dtypes.
template <typename Body>
auto with_type_of(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::f32:
      return body(float{});
    case DType::bf16:
      return body(Bf16{});
    default:
      throw std::logic_error("no loop of the CPU computes with " + std::string(name_of(dtype)));
  }
}

}  // namespace plumb::cpu
