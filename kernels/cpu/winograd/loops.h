// 3x3 convolutions by Winograd's algorithm, for CPUs with AVX-512 (16 lanes) or AVX2 (8). Images and weights
// are float or Bf16; what lies between is fp32. Images are nChw16c or nChw8c, weights OIhw16i16o or OIhw8i8o,
// all aligned to 64 bytes; channels are multiples of 32. Results don't depend on the number of threads.
#pragma once

#include "kernels/program/winograd_plan.h"

namespace plumb::cpu {

// Forward: out from in. Backward-data: d_in from d_out. `plan` is of the pass and of as many threads;
// `workspace` holds plan.floats.
template <typename Element>
void winograd_convolve(const WinogradPlan& plan, int threads, const Element* in, const Element* weight,
                       Element* out, float* workspace);
template <typename Element>
void winograd_backward_weights(const WinogradPlan& plan, int threads, const Element* in, const Element* d_out,
                               float* d_weight, float* workspace);

}  // namespace plumb::cpu
