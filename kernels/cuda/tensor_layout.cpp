#include "kernels/cuda/tensor_layout.h"

#include <stdexcept>
#include <variant>

#include "kernels/cuda/own/element_types.h"
#include "kernels/cuda/plan/depthwise_shape.h"

namespace plumb::cuda {
namespace {

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
  with_type_of(buffer.dtype, [&]<typename Element>(Element) {
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
  with_type_of(buffer.dtype, [&]<typename Element>(Element) {
    const auto elements = reinterpret_cast<const Element*>(held.data());
    for_each_row(shape, [&](std::int64_t outside, std::int64_t stride, std::int64_t inside) {
      for (std::int64_t in = 0; in < shape.in; ++in)
        values[static_cast<std::size_t>(outside + in * stride)] = to_float(elements[inside + in]);
    });
  });
}

}  // namespace plumb::cuda
