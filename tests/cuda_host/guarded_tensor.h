// Tensors for tests of single kernels, and numbers to fill them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/program/program.h"

namespace plumb {

// A tensor aligned to exactly 16 bytes, between guard bytes that are checked on destruction. Kernels on the
// null stream read it from host memory.
class GuardedTensor {
 public:
  // NaNs (integers: -1) until written.
  GuardedTensor(DType dtype, std::size_t elements);
  GuardedTensor(DType dtype, const std::vector<double>& values);  // rounds to nearest even
  ~GuardedTensor();
  GuardedTensor(const GuardedTensor&) = delete;
  GuardedTensor& operator=(const GuardedTensor&) = delete;

  std::byte* data() { return memory_.data() + begin_; }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data());
  }
  std::size_t elements() const { return elements_; }
  DType dtype() const { return dtype_; }
  std::vector<double> values() const;
  std::vector<std::byte> bytes() const;

 private:
  DType dtype_;
  std::size_t elements_, bytes_, begin_;
  std::vector<std::byte> memory_;
};

inline constexpr DType kStorageTypes[] = {DType::f32, DType::f16, DType::bf16};

// `value` rounded to f32, f16 or bf16, and the largest relative error of that rounding.
double rounded(DType dtype, double value);
std::vector<double> rounded(DType dtype, std::vector<double> values);
double unit_roundoff(DType dtype);

// Standard normal values, each exact in `dtype`; different seeds give independent values.
std::vector<double> normal_values(DType dtype, std::size_t count, std::uint64_t seed);

// [images, pixels, channels] to [images, channels, pixels]: from NHWC to NCHW; with channels and pixels
// exchanged, back.
std::vector<double> transposed(const std::vector<double>& values, std::size_t pixels, std::size_t channels);

// EXPECTs every element within `units` roundings of `scale` or of itself, whichever is larger.
void expect_close(const std::vector<double>& values, const std::vector<double>& wanted, DType dtype,
                  double units, double scale = 1);

}  // namespace plumb
