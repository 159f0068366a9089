#include "tests/cuda_host/sparse_tensor.h"

#include <cuda_fp16.h>
#include <sys/mman.h>

#include <cstring>
#include <new>

namespace plumb {

SparseTensor::SparseTensor(DType dtype, std::int64_t elements) : dtype_(dtype), elements_(elements) {
  void* const memory = mmap(nullptr, static_cast<std::size_t>(elements) * bytes_of(dtype),
                            PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(memory);
}

SparseTensor::~SparseTensor() {
  munmap(memory_, static_cast<std::size_t>(elements_) * bytes_of(dtype_));
}

void SparseTensor::set(std::int64_t element, float value) {
  std::byte* const at = memory_ + static_cast<std::size_t>(element) * bytes_of(dtype_);
  const __half half = __float2half(value);
  if (dtype_ == DType::f32)
    std::memcpy(at, &value, sizeof value);
  else
    std::memcpy(at, &half, sizeof half);
}

float SparseTensor::at(std::int64_t element) const {
  const std::byte* const at = memory_ + static_cast<std::size_t>(element) * bytes_of(dtype_);
  float value = 0;
  __half half;
  if (dtype_ == DType::f32)
    std::memcpy(&value, at, sizeof value);
  else
    std::memcpy(&half, at, sizeof half), value = __half2float(half);
  return value;
}

}  // namespace plumb
