#include "kernels/cuda/tensor_layout.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <stdexcept>
#include <type_traits>
#include <variant>

#include "kernels/cuda/depthwise_shape.h"

namespace plumb::cuda {
namespace {

float to_float(float value) {
  return value;
}
float to_float(__half value) {
  return __half2float(value);
}
float to_float(__nv_bfloat16 value) {
  return __bfloat162float(value);
}

template <typename Element>
Element from_float(float value) {
  if constexpr (std::is_same_v<Element, __half>)
    return __float2half(value);
  else if constexpr (std::is_same_v<Element, __nv_bfloat16>)
    return __float2bfloat16(value);
  else
    return value;
}

// Calls `act` with a null pointer to the type of a tensor's elements.
template <typename Act>
void with_element(DType dtype, const Act& act) {
  if (dtype == DType::f32)
    act(static_cast<float*>(nullptr));
  else if (dtype == DType::f16)
    act(static_cast<__half*>(nullptr));
  else if (dtype == DType::bf16)
    act(static_cast<__nv_bfloat16*>(nullptr));
  else
    throw std::logic_error("no tensor is held in this dtype");
}

struct Shape4 {
  std::int64_t out = 1, in = 1, kh = 1, kw = 1, padded_in = 1;
  bool taps_outside = false;  // for a depthwise convolution
};

Shape4 shape_of(const std::vector<std::int64_t>& dims, const Buffer& buffer) {
  Shape4 shape;
  if (dims.size() == 4)
    shape = {.out = dims[0], .in = dims[1], .kh = dims[2], .kw = dims[3]};
  else
    for (std::int64_t dim : dims) shape.in *= dim;
  const std::int64_t rows = shape.out * shape.kh * shape.kw;
  shape.padded_in = static_cast<std::int64_t>(buffer.bytes / bytes_of(buffer.dtype)) / rows;
  shape.taps_outside = buffer.layout == kDepthwiseLayout;
  if (shape.padded_in < shape.in) throw std::logic_error("tensor is larger than buffer " + buffer.name);
  return shape;
}

// visit(first index outside, stride outside, first index on the device) for every run of `in` elements that
// the device holds side by side.
template <typename Visit>
void for_each_row(const Shape4& shape, const Visit& visit) {
  const std::int64_t taps = shape.kh * shape.kw;
  for (std::int64_t out = 0; out < shape.out; ++out)
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const std::int64_t row = shape.taps_outside ? tap * shape.out + out : out * taps + tap;
      visit(out * shape.in * taps + tap, taps, row * shape.padded_in);
    }
}

}  // namespace

std::vector<std::int64_t> layout_dims(const Graph& graph, ParameterId parameter) {
  for (const Op& op : graph.ops) {
    const Dense* dense = std::get_if<Dense>(&op);
    if (!dense || dense->weight != parameter) continue;
    const Shape& in = graph.values[dense->in].shape;
    return {graph.parameters[parameter].dims[0], in.c, in.h, in.w};
  }
  return graph.parameters[parameter].dims;
}

std::vector<std::byte> to_device_layout(std::span<const float> values, const std::vector<std::int64_t>& dims,
                                        const Buffer& buffer) {
  std::vector<std::byte> held(buffer.bytes);
  const Shape4 shape = shape_of(dims, buffer);
  with_element(buffer.dtype, [&]<typename Element>(Element*) {
    const auto elements = reinterpret_cast<Element*>(held.data());
    for_each_row(shape, [&](std::int64_t outside, std::int64_t stride, std::int64_t inside) {
      for (std::int64_t in = 0; in < shape.in; ++in)
        elements[inside + in] = from_float<Element>(values[static_cast<std::size_t>(outside + in * stride)]);
    });
  });
  return held;
}

void from_device_layout(std::span<const std::byte> held, const std::vector<std::int64_t>& dims,
                        const Buffer& buffer, std::span<float> values) {
  const Shape4 shape = shape_of(dims, buffer);
  with_element(buffer.dtype, [&]<typename Element>(Element*) {
    const auto elements = reinterpret_cast<const Element*>(held.data());
    for_each_row(shape, [&](std::int64_t outside, std::int64_t stride, std::int64_t inside) {
      for (std::int64_t in = 0; in < shape.in; ++in)
        values[static_cast<std::size_t>(outside + in * stride)] = to_float(elements[inside + in]);
    });
  });
}

}  // namespace plumb::cuda
