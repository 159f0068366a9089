#include "tests/cuda_host/host_numbers.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace plumb::cuda {
namespace {

using Half = _Float16;

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7FFF + (bits >> 16 & 1);
  return static_cast<std::uint16_t>((std::isnan(value) ? bits | 0x400000 : rounded) >> 16);
}

[[noreturn]] void refuse(DType dtype) {
  throw std::logic_error("no floats are held as " + std::string(name_of(dtype)));
}

}  // namespace

std::vector<float> read_floats(const std::byte* from, std::size_t elements, DType dtype) {
  std::vector<float> values(elements);
  if (dtype == DType::f32) {
    std::memcpy(values.data(), from, elements * sizeof(float));
  } else if (dtype == DType::f16) {
    const auto* held = reinterpret_cast<const Half*>(from);
    for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<float>(held[i]);
  } else if (dtype == DType::bf16) {
    const auto* held = reinterpret_cast<const std::uint16_t*>(from);
    for (std::size_t i = 0; i < elements; ++i) values[i] = from_bf16(held[i]);
  } else {
    refuse(dtype);
  }
  return values;
}

std::vector<float> read_factors(const std::byte* from, std::size_t elements, DType dtype, bool allow_tf32) {
  std::vector<float> values = read_floats(from, elements, dtype);
  if (allow_tf32 && dtype == DType::f32)
    for (float& value : values)
      if (std::isfinite(value)) value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & ~0x1fffU);
  return values;
}

void write_floats(std::byte* to, const std::vector<float>& values, DType dtype) {
  if (dtype == DType::f32) {
    std::memcpy(to, values.data(), values.size() * sizeof(float));
  } else if (dtype == DType::f16) {
    auto* held = reinterpret_cast<Half*>(to);
    for (std::size_t i = 0; i < values.size(); ++i) held[i] = static_cast<Half>(values[i]);
  } else if (dtype == DType::bf16) {
    auto* held = reinterpret_cast<std::uint16_t*>(to);
    for (std::size_t i = 0; i < values.size(); ++i) held[i] = to_bf16(values[i]);
  } else {
    refuse(dtype);
  }
}

void round_floats(std::vector<float>& values, DType dtype) {
  if (dtype == DType::f16)
    for (float& value : values) value = static_cast<float>(static_cast<Half>(value));
  if (dtype == DType::bf16)
    for (float& value : values) value = from_bf16(to_bf16(value));
}

}  // namespace plumb::cuda
