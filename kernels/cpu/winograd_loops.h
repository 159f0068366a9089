// 3x3 convolutions by Winograd's F(4x4, 3x3), for CPUs with AVX-512 (16 lanes) or AVX2 (8). Images and
// weights are float or Bf16; what lies between is fp32. Images are nChw16c or nChw8c, weights OIhw16i16o or
// OIhw8i8o, all aligned to 64 bytes; channels are multiples of 32. Results don't depend on the number of
// threads.
#pragma once

#include "kernels/winograd.h"

namespace plumb::cpu {

// `workspace` holds the floats of plan_winograd(shape, …).
template <typename Element>
void winograd_forward(const ConvShape& shape, int lanes, int threads, const Element* in,
                      const Element* weight, Element* out, float* workspace);
// … of plan_winograd(backward_data_shape(shape), …).
template <typename Element>
void winograd_backward_data(const ConvShape& shape, int lanes, int threads, const Element* d_out,
                            const Element* weight, Element* d_in, float* workspace);
// … of plan_winograd_weights(shape, …).
template <typename Element>
void winograd_backward_weights(const ConvShape& shape, int lanes, int threads, const Element* in,
                               const Element* d_out, float* d_weight, float* workspace);

}  // namespace plumb::cpu
