// Backward-weights of convolutions in bf16 by VDPBF16PS: a loop of ours for CPUs with AVX512_BF16.
#pragma once

#include <cstddef>

#include "kernels/cpu/element_types.h"
#include "kernels/program/conv_shape.h"

namespace plumb::cpu {

// Whether the loop computes this shape: in_channels a multiple of 16, out_channels of 32, work for all
// threads.
bool can_sum_weights_bf16(const ConvShape& shape, int threads);
// Bytes of workspace that all threads need together.
std::size_t sum_weights_bf16_workspace(const ConvShape& shape, int threads);
// in, d_out: nChw16c; d_weight: OIhw16i16o, overwritten; all and the workspace aligned to 64 bytes. Each sum
// has one order, whatever the number of threads. The CPU must have AVX512_BF16.
void sum_weights_bf16(const ConvShape& shape, int threads, const Bf16* in, const Bf16* d_out, float* d_weight,
                      std::byte* workspace);

}  // namespace plumb::cpu
