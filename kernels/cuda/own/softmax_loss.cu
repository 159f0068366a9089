#include "kernels/cuda/own/elements.h"
#include "kernels/cuda/own/layers.h"
#include "kernels/cuda/own/reduce.h"

namespace plumb::cuda {
namespace {

// Block r computes row r. Reads 4 bytes per class from memory, and again from the cache for the sum of
// exponentials and for the gradient, writes 4 or 2. batch x classes is small (1 MB for 256 x 1000), so three
// passes of a block over 4 KB are bound by latency, not by memory.
template <typename T>
__global__ void softmax_rows(SoftmaxOperands at, int classes, float smoothing) {
  const float* logits = at.logits + std::int64_t{blockIdx.x} * classes;
  T* d_logits = reinterpret_cast<T*>(at.d_logits) + std::int64_t{blockIdx.x} * classes;
  const int label = at.labels[blockIdx.x];
  const float logit_of_label = logits[label];

  float largest = -INFINITY, logit_sum = 0;
  int larger = 0;  // logits larger than the label's
  for (int k = threadIdx.x; k < classes; k += kThreads) {
    const float logit = logits[k];
    largest = Largest()(largest, logit);
    logit_sum += logit;
    larger += logit > logit_of_label ? 1 : 0;
  }
  largest = combine_block(largest, Largest());
  logit_sum = combine_block(logit_sum, Sum());
  larger = combine_block(larger, Sum());

  float sum = 0;
  for (int k = threadIdx.x; k < classes; k += kThreads) sum += expf(logits[k] - largest);
  sum = combine_block(sum, Sum());

  const float factor = at.state->step.loss_scale / static_cast<float>(gridDim.x);
  const float everywhere = smoothing / static_cast<float>(classes);
  const float inverse_sum = 1.0F / sum;
  for (int k = threadIdx.x; k < classes; k += kThreads) {
    const float probability = expf(logits[k] - largest) * inverse_sum;
    const float wanted = everywhere + (k == label ? 1.0F - smoothing : 0.0F);
    d_logits[k] = from_float<T>((probability - wanted) * factor);
  }
  if (threadIdx.x != 0) return;
  const double log_sum = static_cast<double>(largest) + log(static_cast<double>(sum));
  at.row_losses[blockIdx.x] = {
      .loss = log_sum - (1.0 - smoothing) * logit_of_label - static_cast<double>(everywhere) * logit_sum,
      .top1 = larger < 1 ? 1 : 0,
      .top5 = larger < 5 ? 1 : 0};
}

// A single block sums the rows in a fixed order and writes the record of this iteration. Reads 16 bytes per
// row; bound by latency.
__global__ void sum_rows(const RowLoss* rows, int count, const State* state, IterationRecord* records) {
  double loss = 0;
  int top1 = 0, top5 = 0;
  for (int row = threadIdx.x; row < count; row += kThreads) {
    loss += rows[row].loss;
    top1 += rows[row].top1;
    top5 += rows[row].top5;
  }
  loss = combine_block(loss, Sum());
  top1 = combine_block(top1, Sum());
  top5 = combine_block(top5, Sum());
  if (threadIdx.x != 0) return;
  IterationRecord& record = records[state->step.iteration % kMetricsKept];
  record.loss = loss / count;
  record.top1 = top1;
  record.top5 = top5;
}

}  // namespace

void launch_softmax_loss(const SoftmaxOperands& at, std::int64_t rows, std::int64_t classes, float smoothing,
                         cudaStream_t stream) {
  with_type_of(at.d_logits_dtype, [&]<typename T>(T) {
    gpu::launch(softmax_rows<T>, blocks_for(rows, 1), kThreads, 0, stream, at, static_cast<int>(classes),
                smoothing);
  });
  gpu::launch(sum_rows, 1, kThreads, 0, stream, at.row_losses, static_cast<int>(rows), at.state, at.records);
}

}  // namespace plumb::cuda
