// Tensors larger than the machine's memory: unwritten pages are zeros and take none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/program/program.h"

namespace plumb {

class SparseTensor {
 public:
  // f32 or f16, all zeros. Throws std::bad_alloc if the system can't reserve the address space.
  SparseTensor(DType dtype, std::int64_t elements);
  ~SparseTensor();
  SparseTensor(const SparseTensor&) = delete;
  SparseTensor& operator=(const SparseTensor&) = delete;

  std::byte* data() { return memory_; }
  float* floats() { return reinterpret_cast<float*>(memory_); }
  std::int64_t elements() const { return elements_; }
  void set(std::int64_t element, float value);
  float at(std::int64_t element) const;
  // Index from the end: 0 is the last element.
  void set_from_end(std::int64_t element, float value) { set(elements_ - 1 - element, value); }
  float from_end(std::int64_t element) const { return at(elements_ - 1 - element); }

 private:
  DType dtype_;
  std::int64_t elements_;
  std::byte* memory_;
};

}  // namespace plumb
