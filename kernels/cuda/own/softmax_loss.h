// Softmax cross-entropy with label smoothing, its gradient, and top-1 and top-5 counts, for a whole batch.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/plan/state.h"
#include "kernels/program/instructions/dtype.h"

namespace plumb::cuda {

// A row's part of the sum over the batch; the workspace has one per row.
struct RowLoss {
  double loss = 0;
  std::int32_t top1 = 0, top5 = 0;
};

struct SoftmaxOperands {
  const float* logits = nullptr;         // [rows, classes]
  const std::int32_t* labels = nullptr;  // [rows]
  std::byte* d_logits = nullptr;         // [rows, classes]
  DType d_logits_dtype = DType::f32;
  const State* state = nullptr;
  RowLoss* row_losses = nullptr;       // [rows]
  IterationRecord* records = nullptr;  // the ring
};

// Loss of a row: log(sum exp z) - (1 - s) z_y - s / K sum z; d_logits = (p - q) / rows * loss_scale with q =
// (1 - s) onehot + s / K (Szegedy et al. 2016, arXiv:1512.00567, section 7). A label counts as one of the k
// largest if fewer than k logits are larger. The mean loss and the counts go to the record of the state's
// iteration. A NaN among the logits makes the loss NaN.
void launch_softmax_loss(const SoftmaxOperands& at, std::int64_t rows, std::int64_t classes, float smoothing,
                         cudaStream_t stream);

}  // namespace plumb::cuda
