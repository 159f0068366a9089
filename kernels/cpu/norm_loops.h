// The loops of batch norm on a CPU. Statistics and sums are the same for any number of threads.
#pragma once

#include <cstddef>

#include "kernels/cpu/norm_tiling.h"
#include "models/graph.h"

namespace plumb::cpu {

// Per channel unless said otherwise; `in`, `out`, `residual` as the tiling says.
struct NormForward {
  NormTiling tiling;
  Activation activation = Activation::none;
  NormOrder order;
  bool one_slope = false;
  double epsilon = 1e-5, momentum = 0.1;
  double elements = 0;  // per channel
  const float *in = nullptr, *scale = nullptr, *bias = nullptr;
  const float *residual = nullptr, *slope = nullptr;  // null where there is none
  float *running_mean = nullptr, *running_variance = nullptr, *out = nullptr;
  float *mean = nullptr, *inverse_deviation = nullptr;
  LaneSums* sums = nullptr;  // norm_forward_sums()
};
std::size_t norm_forward_sums(const NormTiling& tiling);
void norm_forward(const NormForward& at);

// d_residual, where it is there, takes what passed the activation: the residual's gradient.
struct NormBackward {
  NormTiling tiling;
  Activation activation = Activation::none;
  NormOrder order;
  bool one_slope = false;
  double elements = 0;
  const float *in = nullptr, *d_out = nullptr, *scale = nullptr, *bias = nullptr;
  const float *mean = nullptr, *inverse_deviation = nullptr;
  const float* out = nullptr;       // relu behind a residual: says what passed, and d_residual is there
  const float* d_second = nullptr;  // added to d_out, or null
  const float* slope = nullptr;
  float *d_in = nullptr, *d_scale = nullptr, *d_bias = nullptr;
  float *d_residual = nullptr, *d_slope = nullptr;  // or null
  LaneSums* sums = nullptr;                         // norm_backward_sums()
};
std::size_t norm_backward_sums(const NormTiling& tiling);
void norm_backward(const NormBackward& at);

}  // namespace plumb::cpu
