// End of an iteration: the search for overflows, the update of all parameters in one launch, the next state.
// Everything is enqueued on the stream; addresses are multiples of 16 bytes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/plan/state.h"
#include "kernels/program/instructions/dtype.h"
#include "kernels/program/step_state.h"

namespace plumb::cuda {

// A thread block's share of a tensor: 4 rounds of 256 threads with 8 elements each.
inline constexpr std::int64_t kChunkElements = 8192;

struct UpdateChunk {
  float* master = nullptr;
  float* momentum = nullptr;
  const std::byte* gradient = nullptr;  // f32, f16 or bf16
  std::byte* copy = nullptr;            // the master rounded to copy_dtype, or null
  std::int32_t count = 0;               // elements, at most kChunkElements
  DType gradient_dtype = DType::f32, copy_dtype = DType::f32;
  bool decays = false;
};

// For every element of every chunk (PyTorch's torch.optim.SGD with dampening 0; nesterov=True for nag):
// clang-format off
//   slope = gradient * gradient_scale / loss_scale + weight_decay * master
//   momentum = rule.momentum * momentum + slope
//   master -= learning_rate * (sgd: momentum; nag: slope + rule.momentum * momentum)
// clang-format on
// `chunks` is in device memory. `overflow` may be null. If it is nonzero, nothing changes.
void launch_update(const UpdateRule& rule, const UpdateChunk* chunks, std::size_t count, const State* state,
                   const float* overflow, cudaStream_t stream);

// A parameter [rows, columns] with gradients for some rows only; columns are a multiple of 8.
struct UpdatedRows {
  float* master = nullptr;
  float* momentum = nullptr;
  const std::byte* gradient = nullptr;         // [capacity, columns]: of row samples[k]
  DType gradient_dtype = DType::f32;           // f32, f16 or bf16
  const std::int32_t* samples = nullptr;       // [capacity]: each row at most once
  const std::int32_t* sample_count = nullptr;  // length of samples in use
  std::int64_t capacity = 0, columns = 0;
  float weight_decay = 0;
};
// The same update of those rows; other rows and their momentum stay unchanged.
void launch_update_rows(const UpdateRule& rule, const UpdatedRows& rows, const State* state,
                        const float* overflow, cudaStream_t stream);

struct GradientChunk {
  const std::byte* gradient = nullptr;
  std::int32_t count = 0;  // elements, at most kChunkElements
  DType dtype = DType::f32;
};

// *overflow = 1 if an element of any chunk is infinite or NaN, else 0. `chunks` is in device memory.
void launch_find_overflow(const GradientChunk* chunks, std::size_t count, float* overflow,
                          cudaStream_t stream);

// Completes the record of the state's iteration and moves on to the next one. With dynamic loss scaling an
// overflow halves the scale, never below 1, and growth_interval clean steps in a row double it, never beyond
// 2^24 (the limits of NVIDIA apex's LossScaler). `overflow` null: no overflow.
void launch_advance_state(const LossScaling& scaling, State* state, const float* overflow,
                          IterationRecord* records, cudaStream_t stream);

// Stamps the GPU's clock around a wait: `after` adds the time waited to that of State.
void launch_stamp_wait(State* state, Wait what, bool after, cudaStream_t stream);

}  // namespace plumb::cuda
