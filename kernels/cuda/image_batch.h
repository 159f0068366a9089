// A batch of images and labels in GPU memory, as the first convolution and the loss read it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/program/instructions/dtype.h"
#include "kernels/program/layout.h"
#include "models/graph.h"

namespace plumb::cuda {

// images: [n, h, w, held_channels] with 0 past shape.c, or in NCHW [n, c, h, w]. labels: [n]. At most 65535
// images.
struct ImageBatch {
  std::byte* images = nullptr;
  std::int32_t* labels = nullptr;
  Shape shape;
  std::int64_t held_channels = 0;  // in NHWC: 4, or else as many as take 16 bytes
  DType dtype = DType::f32;
  TensorLayout layout = TensorLayout::nhwc;
};

}  // namespace plumb::cuda
