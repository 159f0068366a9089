// Converts tensors to and from the CUDA device's layout: [out, in, kh, kw] in fp32 outside; inside, in the
// buffer's dtype, [out, kh, kw, in] with padded in-channels ([kh, kw, out] if Buffer::layout is
// kDepthwiseLayout). Vectors and matrices stay unchanged. Runs on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/program/program.h"
#include "models/graph.h"

namespace plumb::cuda {

// A parameter's dims for the functions below: its public ones, except [out, c, h, w] instead of [out, c * h *
// w] for a dense layer that flattens an image. The device holds that weight as [out, h, w, c], so that
// products read activations directly.
std::vector<std::int64_t> layout_dims(const Graph& graph, ParameterId parameter);

// Padding is zeros. `buffer` gives the size in bytes and the dtype (f32, f16, bf16).
std::vector<std::byte> to_device_layout(std::span<const float> values, const std::vector<std::int64_t>& dims,
                                        const Buffer& buffer);
void from_device_layout(std::span<const std::byte> held, const std::vector<std::int64_t>& dims,
                        const Buffer& buffer, std::span<float> values);

}  // namespace plumb::cuda
