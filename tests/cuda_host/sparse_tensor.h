// Tensors of more elements than the machine has memory for: pages that nobody writes are zeros and take none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/program.h"

namespace plumb {

class SparseTensor {
 public:
  // f32 or f16, all zeros. Throws std::bad_alloc where the system grants no such address space.
  SparseTensor(DType dtype, std::int64_t elements);
  ~SparseTensor();
  SparseTensor(const SparseTensor&) = delete;
  SparseTensor& operator=(const SparseTensor&) = delete;

  std::byte* data() { return memory_; }
  float* floats() { return reinterpret_cast<float*>(memory_); }
  std::int64_t elements() const { return elements_; }
  void set(std::int64_t element, float value);
  float at(std::int64_t element) const;
  // Counted from the end: 0 is the last one.
  void set_from_end(std::int64_t element, float value) { set(elements_ - 1 - element, value); }
  float from_end(std::int64_t element) const { return at(elements_ - 1 - element); }

 private:
  DType dtype_;
  std::int64_t elements_;
  std::byte* memory_;
};

}  // namespace plumb
