#include "kernels/cuda/storage.h"

#include <utility>
#include <variant>

#include "kernels/cuda/depthwise_shape.h"
#include "kernels/cuda/state.h"

namespace plumb::cuda {
namespace {

StorageTypes storage_types(Precision precision) {
  switch (precision) {
    case Precision::fp16:
      return {.activations = DType::f16, .weight_gradients = DType::f16, .image_channels = 8};
    case Precision::bf16:
      return {.activations = DType::bf16, .weight_gradients = DType::bf16, .image_channels = 8};
    case Precision::fp32:
    case Precision::tf32:
      break;
  }
  return {.image_channels = 4};
}

void pad_input_channels(Lowering& lowering, const Conv& op, std::int64_t channels) {
  const ParameterBuffers& weight = lowering.parameters[op.weight];
  for (BufferId id : {weight.master, weight.momentum, weight.gradient}) {
    std::size_t& held = lowering.program.buffers[id].bytes;
    held = held / static_cast<std::size_t>(lowering.graph.values[op.in].shape.c) *
           static_cast<std::size_t>(channels);
  }
}

// Before copies are made, which take over the layout.
void set_depthwise_layout(Lowering& lowering, const Conv& op) {
  const ParameterBuffers& weight = lowering.parameters[op.weight];
  for (BufferId id : {weight.master, weight.momentum, weight.gradient})
    if (id != kNone) lowering.program.buffers[id].layout = kDepthwiseLayout;
}

void set_dtype(Buffer& buffer, DType dtype) {
  buffer.bytes = buffer.bytes / bytes_of(buffer.dtype) * bytes_of(dtype);
  buffer.dtype = dtype;
}

// What forward and backward-data read of a parameter: its master, or a copy that the update writes.
BufferId weight_of(Lowering& lowering, ParameterId id, DType dtype) {
  ParameterBuffers& buffers = lowering.parameters[id];
  const bool is_weight = lowering.graph.parameters[id].dims.size() > 1;
  if (!is_weight || dtype == DType::f32) return buffers.master;
  Buffer copy = lowering.program.buffers[buffers.master];
  set_dtype(copy, dtype);
  copy.name += ".half";
  buffers.copies.push_back(add_buffer(lowering.program, std::move(copy)));
  return buffers.copies.back();
}

}  // namespace

Storage start_storage(const Graph& graph, Precision precision) {
  const StorageTypes types = storage_types(precision);
  Storage storage{.lowering = start_lowering(graph, types, sizeof(State)),
                  .activations = types.activations,
                  .weights = {}};
  Lowering& lowering = storage.lowering;
  for (const Op& op : graph.ops) {
    if (const Conv* conv = std::get_if<Conv>(&op)) {
      if (is_depthwise(graph, *conv))
        set_depthwise_layout(lowering, *conv);
      else if (conv->in == 0)
        pad_input_channels(lowering, *conv, types.image_channels);
    }
    if (const SoftmaxLoss* loss = std::get_if<SoftmaxLoss>(&op))
      set_dtype(lowering.program.buffers[lowering.values[loss->in]], DType::f32);
  }
  for (ParameterId id = 0; id < graph.parameters.size(); ++id)
    storage.weights.push_back(weight_of(lowering, id, types.activations));
  return storage;
}

Staging add_staging(Lowering& lowering) {
  const Shape& images = lowering.graph.values[0].shape;
  Staging staging;
  staging.images = add_buffer(lowering.program, {.name = "images.staged",
                                                 .role = Role::input,
                                                 .dims = {2, images.n, images.c, images.h, images.w},
                                                 .persistent = true});
  staging.labels = add_buffer(lowering.program, {.name = "labels.staged",
                                                 .role = Role::input,
                                                 .dtype = DType::i32,
                                                 .dims = {2, images.n},
                                                 .persistent = true});
  return staging;
}

}  // namespace plumb::cuda
