#include "kernels/cuda/tensor_layout.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>
#include <stdexcept>
#include <variant>

#include "kernels/cuda/depthwise_shape.h"

namespace plumb::cuda {
namespace {

void store(float value, DType dtype, std::byte* at) {
  if (dtype == DType::f32) {
    std::memcpy(at, &value, sizeof value);
  } else if (dtype == DType::f16) {
    const __half half = __float2half(value);
    std::memcpy(at, &half, sizeof half);
  } else if (dtype == DType::bf16) {
    const __nv_bfloat16 half = __float2bfloat16(value);
    std::memcpy(at, &half, sizeof half);
  } else {
    throw std::logic_error("no tensor is held in this dtype");
  }
}

float load(DType dtype, const std::byte* at) {
  if (dtype == DType::f16) {
    __half half;
    std::memcpy(&half, at, sizeof half);
    return __half2float(half);
  }
  if (dtype == DType::bf16) {
    __nv_bfloat16 half;
    std::memcpy(&half, at, sizeof half);
    return __bfloat162float(half);
  }
  float value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
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

// visit(index in the public layout, index in the device's layout)
template <typename Visit>
void for_each_element(const Shape4& shape, const Visit& visit) {
  std::size_t outside = 0;
  for (std::int64_t out = 0; out < shape.out; ++out)
    for (std::int64_t in = 0; in < shape.in; ++in)
      for (std::int64_t y = 0; y < shape.kh; ++y)
        for (std::int64_t x = 0; x < shape.kw; ++x) {
          const std::int64_t tap = y * shape.kw + x;
          const std::int64_t row =
              shape.taps_outside ? tap * shape.out + out : out * shape.kh * shape.kw + tap;
          visit(outside++, static_cast<std::size_t>(row * shape.padded_in + in));
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
  const std::size_t element = bytes_of(buffer.dtype);
  for_each_element(shape_of(dims, buffer), [&](std::size_t outside, std::size_t inside) {
    store(values[outside], buffer.dtype, held.data() + inside * element);
  });
  return held;
}

void from_device_layout(std::span<const std::byte> held, const std::vector<std::int64_t>& dims,
                        const Buffer& buffer, std::span<float> values) {
  const std::size_t element = bytes_of(buffer.dtype);
  for_each_element(shape_of(dims, buffer), [&](std::size_t outside, std::size_t inside) {
    values[outside] = load(buffer.dtype, held.data() + inside * element);
  });
}

}  // namespace plumb::cuda
