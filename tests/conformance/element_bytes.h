// Elements of buffers as doubles, and back.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/conformance/instruction_reference.h"
#include "tests/conformance/reference_run.h"

namespace plumb {

template <typename T>
Doubles decoded(const std::vector<std::byte>& bytes, std::size_t count) {
  std::vector<T> values(count);
  std::memcpy(values.data(), bytes.data(), count * sizeof(T));
  return {values.begin(), values.end()};
}

template <typename T>
std::vector<std::byte> encoded(const Doubles& values, std::size_t bytes) {
  std::vector<T> narrow;
  for (double value : values) narrow.push_back(static_cast<T>(value));
  std::vector<std::byte> result(std::max(bytes, narrow.size() * sizeof(T)));
  std::memcpy(result.data(), narrow.data(), narrow.size() * sizeof(T));
  return result;
}

// Element i of floats of any dtype.
inline double number_at(const std::byte* bytes, std::size_t i, DType dtype) {
  if (dtype == DType::f16) {
    _Float16 value = 0;
    std::memcpy(&value, bytes + 2 * i, sizeof value);
    return static_cast<double>(value);
  }
  std::uint32_t bits = 0;
  std::memcpy(&bits, bytes + i * bytes_of(dtype), bytes_of(dtype));
  return std::bit_cast<float>(dtype == DType::bf16 ? bits << 16 : bits);
}
inline void set_number(std::byte* bytes, std::size_t i, DType dtype, double value) {
  const auto half = static_cast<_Float16>(value);
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(rounded(dtype, value)));
  const std::uint32_t stored = dtype == DType::bf16 ? bits >> 16 : bits;
  if (dtype == DType::f16)
    std::memcpy(bytes + 2 * i, &half, sizeof half);
  else
    std::memcpy(bytes + i * bytes_of(dtype), &stored, bytes_of(dtype));
}

}  // namespace plumb
