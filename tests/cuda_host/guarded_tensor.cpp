#include "tests/cuda_host/guarded_tensor.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "base/random.h"

namespace plumb {
namespace {

constexpr std::size_t kGuardBytes = 256;
constexpr std::byte kGuard{0xA5};

// Calls body with a null pointer to the storage type of `dtype`.
template <typename Body>
void with_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::f32:
      return body(static_cast<float*>(nullptr));
    case DType::f16:
      return body(static_cast<__half*>(nullptr));
    case DType::bf16:
      return body(static_cast<__nv_bfloat16*>(nullptr));
    case DType::i32:
      return body(static_cast<std::int32_t*>(nullptr));
    case DType::u8:
      return body(static_cast<std::uint8_t*>(nullptr));
    default:
      throw std::logic_error("no GuardedTensor holds " + std::string(name_of(dtype)));
  }
}

template <typename T>
T narrowed(double value) {
  [[maybe_unused]] const float single = static_cast<float>(value);
  [[maybe_unused]] const bool is_single = static_cast<double>(single) == value;  // mostly, and faster
  if constexpr (std::is_same_v<T, __half>)
    return is_single ? __float2half(single) : __double2half(value);
  else if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return is_single ? __float2bfloat16(single) : __double2bfloat16(value);
  else
    return static_cast<T>(value);
}

template <typename T>
double widened(T value) {
  return static_cast<double>(value);
}
double widened(__half value) {
  return __half2float(value);
}
double widened(__nv_bfloat16 value) {
  return __bfloat162float(value);
}

}  // namespace

GuardedTensor::GuardedTensor(DType dtype, std::size_t elements)
    : dtype_(dtype),
      elements_(elements),
      bytes_(elements * bytes_of(dtype)),
      begin_(kGuardBytes),
      memory_(bytes_ + 3 * kGuardBytes, kGuard) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.data() + begin_);
  begin_ += (32 - address % 32) % 32 + 16;
  std::memset(data(), 0xFF, bytes_);
}

GuardedTensor::GuardedTensor(DType dtype, const std::vector<double>& values)
    : GuardedTensor(dtype, values.size()) {
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    for (std::size_t i = 0; i < values.size(); ++i) as<T>()[i] = narrowed<T>(values[i]);
  });
}

GuardedTensor::~GuardedTensor() {
  const auto is_guard = [](std::byte byte) { return byte == kGuard; };
  const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(begin_);
  EXPECT_TRUE(std::all_of(memory_.begin(), begin, is_guard)) << "something wrote in front of a tensor";
  EXPECT_TRUE(std::all_of(begin + static_cast<std::ptrdiff_t>(bytes_), memory_.end(), is_guard))
      << "something wrote behind a tensor";
}

std::vector<double> GuardedTensor::values() const {
  std::vector<double> values(elements_);
  with_type(dtype_, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const T* held = reinterpret_cast<const T*>(memory_.data() + begin_);
    for (std::size_t i = 0; i < elements_; ++i) values[i] = widened(held[i]);
  });
  return values;
}

std::vector<std::byte> GuardedTensor::bytes() const {
  const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(begin_);
  return {begin, begin + static_cast<std::ptrdiff_t>(bytes_)};
}

double rounded(DType dtype, double value) {
  double result = 0;
  with_type(dtype,
            [&](auto* type) { result = widened(narrowed<std::remove_pointer_t<decltype(type)>>(value)); });
  return result;
}

std::vector<double> rounded(DType dtype, std::vector<double> values) {
  with_type(dtype, [&](auto* type) {
    for (double& value : values) value = widened(narrowed<std::remove_pointer_t<decltype(type)>>(value));
  });
  return values;
}

double unit_roundoff(DType dtype) {
  return dtype == DType::f32 ? 0x1p-24 : dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
}

std::vector<double> normal_values(DType dtype, std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  fill_normal(stream_key(seed, "test"), 0, 1, values);
  return rounded(dtype, std::vector<double>(values.begin(), values.end()));
}

std::vector<double> transposed(const std::vector<double>& values, std::size_t pixels, std::size_t channels) {
  if (pixels == 1 || channels == 1) return values;
  std::vector<double> result;
  result.reserve(values.size());
  const std::size_t image = pixels * channels;
  for (std::size_t begin = 0; begin < values.size(); begin += image)
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t p = 0; p < pixels; ++p) result.push_back(values[begin + p * channels + c]);
  return result;
}

void expect_close(const std::vector<double>& values, const std::vector<double>& wanted, DType dtype,
                  double units, double scale) {
  ASSERT_EQ(values.size(), wanted.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double allowed = units * unit_roundoff(dtype) * std::max(scale, std::abs(wanted[i]));
    if (std::abs(values[i] - wanted[i]) <= allowed) continue;
    if (++wrong <= 3)
      ADD_FAILURE() << "element " << i << " is " << values[i] << ", not " << wanted[i] << " +- " << allowed;
  }
  EXPECT_EQ(wrong, 0U) << "of " << values.size() << " elements in " << name_of(dtype);
}

}  // namespace plumb
