// Pooling, dropout and the softmax loss, NHWC in f32, f16 or bf16. Channels are a multiple of 16 bytes.
// Everything is enqueued on the stream; addresses are multiples of 16 bytes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/plan/blocks.h"
#include "kernels/cuda/plan/state.h"
#include "kernels/program/instructions/dtype.h"
#include "models/dropout.h"
#include "models/graph.h"

namespace plumb::cuda {

// Pools: at most 65535 images and rows; an image has at most 4 GiB.
inline constexpr std::uint8_t kNoWinner = 255;

// Normalizes v = scale_shift[0] * in + scale_shift[1] and pools relu(v), in windows of 3 x 3 at every second
// pixel (goes_back_through() in plan/norm_partition.h). scale_shift: [2, c]. out (n, y, x, c) is the largest
// relu(v) of the window, winners the element of `in` that won, and argmax its place in the window, row by
// row, or kNoWinner where the ReLU holds it back. Padding never wins, the first of equals does, and a NaN
// always does (PyTorch's MaxPool2d). The largest is chosen before v is rounded to f32; where the scale is 0,
// it is the largest of `in`.
void launch_max_pool_forward(DType dtype, const WindowShape& shape, const std::byte* in,
                             const float* scale_shift, std::byte* out, std::uint8_t* argmax,
                             std::byte* winners, cudaStream_t stream);

// out[n, c] = mean of image n's pixels in channel c; d_in = d_out[n, c] / pixels. Sums are f32. These take
// the shape's n, h, w and c.
void launch_average_forward(DType dtype, const WindowShape& shape, const std::byte* in, std::byte* out,
                            cudaStream_t stream);
void launch_average_backward(DType dtype, const WindowShape& shape, const std::byte* d_out, std::byte* d_in,
                             cudaStream_t stream);

// Dropout of activations; models/dropout.h picks the elements by their order c, h, w. out = keep_scale * in
// for elements kept in the state's iteration, else 0; forward and backward alike. Image n of the batch is
// sample first_sample + n. Both are of this shape, in a multiple of 8 channels. At most 65535 images of fewer
// than 2^32 elements each.
void launch_dropout(DType dtype, const Shape& shape, const std::byte* in, std::byte* out,
                    const DropoutRule& rule, const State* state, cudaStream_t stream);

struct SoftmaxOperands {
  const float* logits = nullptr;         // [rows, classes]
  const std::int32_t* labels = nullptr;  // [rows]
  std::byte* d_logits = nullptr;         // [rows, classes]
  DType d_logits_dtype = DType::f32;
  const State* state = nullptr;
  RowLoss* row_losses = nullptr;       // [rows]
  IterationRecord* records = nullptr;  // the ring
};

// Softmax cross-entropy with label smoothing, its gradient, and top-1 and top-5 counts, for a whole batch.
// Loss of a row: log(sum exp z) - (1 - s) z_y - s / K sum z; d_logits = (p - q) / rows * loss_scale with q =
// (1 - s) onehot + s / K (Szegedy et al. 2016, arXiv:1512.00567, section 7). A label counts as one of the k
// largest if fewer than k logits are larger. The mean loss and the counts go to the record of the state's
// iteration. A NaN among the logits makes the loss NaN.
void launch_softmax_loss(const SoftmaxOperands& at, std::int64_t rows, std::int64_t classes, float smoothing,
                         cudaStream_t stream);

}  // namespace plumb::cuda
