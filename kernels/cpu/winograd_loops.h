// 3x3 convolutions by Winograd's F(4x4, 3x3) in fp32, for CPUs with AVX-512. Images are nChw16c, weights
// OIhw16i16o, all aligned to 64 bytes; channels are multiples of 32. Results don't depend on the number of
// threads.
#pragma once

#include "kernels/winograd.h"

namespace plumb::cpu {

// `workspace` holds plan_winograd(shape, threads).floats.
void winograd_forward(const ConvShape& shape, int threads, const float* in, const float* weight, float* out,
                      float* workspace);
// … plan_winograd(backward_data_shape(shape), threads).floats.
void winograd_backward_data(const ConvShape& shape, int threads, const float* d_out, const float* weight,
                            float* d_in, float* workspace);
// … plan_winograd_weights(shape).floats.
void winograd_backward_weights(const ConvShape& shape, const float* in, const float* d_out, float* d_weight,
                               float* workspace);

}  // namespace plumb::cpu
