// The loops of batch norm on a CPU. Statistics and sums don't depend on the number of threads.
#pragma once

#include <cstddef>

#include "kernels/cpu/element_types.h"
#include "kernels/cpu/norm_tiling.h"
#include "models/graph.h"

namespace plumb::cpu {

struct NormForm {
  NormTiling tiling;
  Activation activation = Activation::none;
  NormOrder order;
  bool one_slope = false;
  double elements = 0;  // per channel
};

// Tensors of T, float or Bf16, have the tiling's layout; arrays of float are per channel.
template <typename T>
struct NormForward {
  NormForm form;
  double epsilon = 1e-5, momentum = 0.1;
  const T* in = nullptr;
  const float *scale = nullptr, *bias = nullptr;
  const T* residual = nullptr;   // or null
  const float* slope = nullptr;  // or null
  float *running_mean = nullptr, *running_variance = nullptr;
  T* out = nullptr;
  float *mean = nullptr, *inv_std = nullptr;
  LaneSums* sums = nullptr;  // norm_forward_sums()
};
std::size_t norm_forward_sums(const NormTiling& tiling);
template <typename T>
void norm_forward(const NormForward<T>& at);

// d_residual, if not null, receives the residual's gradient: that of the activation's input. It may be d_out,
// and d_in, another one, may be d_out or d_second.
template <typename T>
struct NormBackward {
  NormForm form;
  const T *in = nullptr, *d_out = nullptr;
  const float *scale = nullptr, *bias = nullptr, *mean = nullptr, *inv_std = nullptr;
  const T* out = nullptr;       // for a relu after a residual: gives the mask; d_residual isn't null then
  const T* d_second = nullptr;  // added to d_out, or null
  const float* slope = nullptr;
  T* d_in = nullptr;
  float *d_scale = nullptr, *d_bias = nullptr;
  T* d_residual = nullptr;   // or null
  float* d_slope = nullptr;  // or null
  LaneSums* sums = nullptr;  // norm_backward_sums()
};
std::size_t norm_backward_sums(const NormTiling& tiling);
template <typename T>
void norm_backward(const NormBackward<T>& at);

}  // namespace plumb::cpu
