// Resizing of decoded images on a GPU, to the bit as on a CPU (kernels/resize_plan.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/resize_plan.h"

namespace plumb::cuda {

// A ResizeAxis in device memory.
struct DeviceAxis {
  const int *first = nullptr, *count = nullptr;
  const std::uint16_t* weights = nullptr;
  int stride = 0, lowest = 0, highest = 0;
};

struct ResizeTask {
  const std::uint8_t* pixels = nullptr;  // red, green, blue
  std::int64_t row_bytes = 0;            // from a row of pixels to the next
  DeviceAxis x, y;
  int out_size = 0;
  std::uint16_t* rows = nullptr;  // room for resized_rows() numbers
  std::uint8_t* out = nullptr;    // [out_size, out_size, 3]
};

inline std::size_t resized_rows(const ResizePlan& plan) {
  return static_cast<std::size_t>(plan.out_size) * static_cast<std::size_t>(plan.x.highest - plan.x.lowest) *
         3;
}

void launch_resize(const ResizeTask& task, cudaStream_t stream);

}  // namespace plumb::cuda
