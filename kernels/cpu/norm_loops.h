// The loops of batch norm on a CPU. Statistics and sums don't depend on the number of threads.
#pragma once

#include <cstddef>

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

// Arrays are per channel; `in`, `out` and `residual` have the tiling's layout.
struct NormForward {
  NormForm form;
  double epsilon = 1e-5, momentum = 0.1;
  const float *in = nullptr, *scale = nullptr, *bias = nullptr;
  const float *residual = nullptr, *slope = nullptr;  // or null
  float *running_mean = nullptr, *running_variance = nullptr, *out = nullptr;
  float *mean = nullptr, *inv_std = nullptr;
  LaneSums* sums = nullptr;  // norm_forward_sums()
};
std::size_t norm_forward_sums(const NormTiling& tiling);
void norm_forward(const NormForward& at);

// d_residual, if not null, receives the residual's gradient: that of the activation's input.
struct NormBackward {
  NormForm form;
  const float *in = nullptr, *d_out = nullptr, *scale = nullptr, *bias = nullptr;
  const float *mean = nullptr, *inv_std = nullptr;
  const float* out = nullptr;       // for a relu after a residual: gives the mask; d_residual isn't null then
  const float* d_second = nullptr;  // added to d_out, or null
  const float* slope = nullptr;
  float *d_in = nullptr, *d_scale = nullptr, *d_bias = nullptr;
  float *d_residual = nullptr, *d_slope = nullptr;  // or null
  LaneSums* sums = nullptr;                         // norm_backward_sums()
};
std::size_t norm_backward_sums(const NormTiling& tiling);
void norm_backward(const NormBackward& at);

}  // namespace plumb::cpu
