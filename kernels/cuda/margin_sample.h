// Samples the class centers for a step of a sampled head, and gathers their rows. Shapes and launches
// depend on sizes alone. Everything is enqueued on the stream; addresses are multiples of 16 bytes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/plan/margin_partition.h"
#include "kernels/cuda/plan/state.h"
#include "kernels/program/instructions/dtype.h"
#include "models/margin_head.h"

namespace plumb::cuda {

// Rows of this rank's `own_classes` centers: its distinct labels, ascending, then values of
// class_permutation(key, iteration, own_classes) that are no labels, in order, until there are max(least,
// labels) rows. models/margin_head.h defines this order.
struct MarginSample {
  const std::int32_t* labels = nullptr;  // [images]: of all ranks
  const State* state = nullptr;
  std::int32_t* samples = nullptr;  // [capacity]: rows of weight, -1 behind those in use
  std::int32_t* sample_count = nullptr;
  std::int32_t* columns = nullptr;    // [images]: the label's place among the samples, -1 on other ranks
  std::int32_t* workspace = nullptr;  // sample_workspace() elements
  PhiloxKey key{};
  std::int64_t images = 0, capacity = 0;
  std::int32_t first_class = 0, own_classes = 0;
  std::int32_t least = 0;  // sampled_rows()
};
void launch_margin_sample(const MarginSample& at, cudaStream_t stream);

// rows[k] = weight[samples[k]] in `dtype` for k < *sample_count, then zeros; [capacity, embedding].
struct GatheredRows {
  const std::int32_t* samples = nullptr;
  const std::int32_t* sample_count = nullptr;
  const float* weight = nullptr;
  std::byte* rows = nullptr;
  DType dtype = DType::f32;
};
void launch_margin_gather(const GatheredRows& at, std::int64_t capacity, std::int64_t embedding,
                          cudaStream_t stream);

}  // namespace plumb::cuda
