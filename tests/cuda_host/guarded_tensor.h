// Tensors for tests of single kernels, and the numbers to fill them with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/program.h"

namespace plumb {

// A tensor as a kernel finds it: at a multiple of 16 bytes and of no more, between guards whose bytes are
// checked when it goes away. On the null stream kernels take it from the host's memory.
class GuardedTensor {
 public:
  // Holds NaNs (integers: -1) until somebody writes it.
  GuardedTensor(DType dtype, std::size_t elements);
  GuardedTensor(DType dtype, const std::vector<double>& values);  // rounded to nearest even
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

// What `value` becomes when it is stored as f32, f16 or bf16, and the largest relative error of that.
double rounded(DType dtype, double value);
std::vector<double> rounded(DType dtype, std::vector<double> values);
double unit_roundoff(DType dtype);

// Standard normal values, each exact in `dtype`; those of different seeds are unrelated.
std::vector<double> normal_values(DType dtype, std::size_t count, std::uint64_t seed);

// EXPECTs every element within `units` roundings of `scale` or of its own, whichever is larger.
void expect_close(const std::vector<double>& values, const std::vector<double>& wanted, DType dtype,
                  double units, double scale = 1);

}  // namespace plumb
