// Tensors as the CUDA device holds them, and back: [out, in, kh, kw] in fp32 at the border, [out, kh, kw, in]
// with padded in-channels inside ([kh, kw, out] where Buffer::layout is kDepthwiseLayout), in the buffer's
// dtype. Vectors and matrices stay as they are. On the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/program.h"
#include "models/graph.h"

namespace plumb::cuda {

// The dims of a parameter as the functions below want them: its public ones, but of a dense layer that
// flattens an image [out, c, h, w] in place of [out, c * h * w]: the device holds it [out, h, w, c], so that
// products read activations as they are.
std::vector<std::int64_t> layout_dims(const Graph& graph, ParameterId parameter);

// Padding is zeros. `buffer` says how many bytes it holds, and in which dtype (f32, f16, bf16).
std::vector<std::byte> to_device_layout(std::span<const float> values, const std::vector<std::int64_t>& dims,
                                        const Buffer& buffer);
void from_device_layout(std::span<const std::byte> held, const std::vector<std::int64_t>& dims,
                        const Buffer& buffer, std::span<float> values);

}  // namespace plumb::cuda
