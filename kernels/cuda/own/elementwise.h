// Passes over whole tensors: sums, casts, column sums, and packing a batch into the device's layout.
// Addresses are multiples of 16 bytes; `count` counts elements; everything is enqueued on the stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/plan/state.h"
#include "kernels/program/instructions/batch.h"
#include "kernels/program/instructions/dtype.h"
#include "models/graph.h"

namespace plumb::cuda {

// A batch of images and labels in GPU memory, as the first convolution and the loss read it.
// images: [n, h, w, held_channels] with 0 past shape.c. labels: [n]. At most 65535 images.
struct ImageBatch {
  std::byte* images = nullptr;
  std::int32_t* labels = nullptr;
  Shape shape;
  std::int64_t held_channels = 0;  // 4, or else as many as take 16 bytes
  DType dtype = DType::f32;
};

// into += from, both f32, f16 or bf16; added in f32.
void launch_accumulate(DType dtype, std::byte* into, const std::byte* from, std::int64_t count,
                       cudaStream_t stream);

// into = scale * from, between any two of f32, f16 and bf16; rounded to nearest even once.
void launch_cast(DType from_dtype, const std::byte* from, DType into_dtype, std::byte* into,
                 std::int64_t count, float scale, cudaStream_t stream);

// sums[j] = sum over i of matrix[i, j]: matrix [rows, columns] row-major in f32, f16 or bf16, sums f32. Used
// for the gradient of a bias. The order of summation depends on `rows` alone.
void launch_column_sums(DType dtype, const std::byte* matrix, float* sums, std::int64_t rows,
                        std::int64_t columns, cudaStream_t stream);

// batch.images = staged.pixels[n, h, w, 3], normalized. Copies the labels.
struct StagedBatch {
  const std::uint8_t* pixels =
      nullptr;  // [2, n, h, w, 3]: the parity of the state's iteration picks the half
  const std::int32_t* labels = nullptr;  // [2, n]
};
void launch_pack_batch(const StagedBatch& staged, const Normalization& normalization, const State* state,
                       const ImageBatch& batch, cudaStream_t stream);

}  // namespace plumb::cuda
