#include "kernels/cuda/own/optimizer.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "kernels/cuda/binding.h"
#include "kernels/cuda/runtime/runtime.h"

namespace plumb::cuda {
namespace {

// A table in device memory, outside the arena (some 200 KB for a ResNet-50). Its callables own it.
template <typename Chunk>
struct Table {
  std::shared_ptr<const std::byte> memory;
  std::size_t count = 0;
  const Chunk* chunks() const { return reinterpret_cast<const Chunk*>(memory.get()); }
};

template <typename Chunk>
Table<Chunk> upload(const std::vector<Chunk>& chunks, cudaStream_t stream) {
  const std::size_t bytes = chunks.size() * sizeof(Chunk);
  DeviceMemory memory = allocate_device(bytes);
  check(cudaMemcpyAsync(memory.get(), chunks.data(), bytes, cudaMemcpyHostToDevice, stream));
  check(cudaStreamSynchronize(stream));
  return {.memory = std::move(memory), .count = chunks.size()};
}

// Calls add(first element, elements) for each share of a tensor.
template <typename Add>
void split(std::int64_t elements, const Add& add) {
  for (std::int64_t first = 0; first < elements; first += kChunkElements)
    add(first, static_cast<std::int32_t>(std::min(kChunkElements, elements - first)));
}

// A tensor and its address, for the kernels.
struct Held {
  BufferId buffer = 0;
  DType dtype = DType::f32;
  std::int64_t elements = 0;
  std::byte* at(const Arena& arena, std::int64_t element) const {
    return arena.data(buffer) + static_cast<std::size_t>(element) * bytes_of(dtype);
  }
};
Held held(const Context& context, BufferId id) {
  return {id, context.dtype(id), context.elements_held(id)};
}

struct UpdatedTensor {
  Held master, momentum, gradient;
  std::optional<Held> copy;
  bool decays = false;
};

UpdatedTensor tensor_of(const Context& context, const UpdatedParameter& updated) {
  UpdatedTensor tensor{.master = held(context, updated.master),
                       .momentum = held(context, updated.momentum),
                       .gradient = held(context, updated.gradient),
                       .copy = {},
                       .decays = context.graph.parameters[updated.parameter].decays};
  if (!updated.copies.empty()) tensor.copy = held(context, updated.copies.front());
  return tensor;
}

std::vector<UpdateChunk> chunks_of(const std::vector<UpdatedTensor>& tensors, const Arena& arena) {
  std::vector<UpdateChunk> chunks;
  for (const UpdatedTensor& tensor : tensors) {
    split(tensor.master.elements, [&](std::int64_t first, std::int32_t count) {
      chunks.push_back({.master = reinterpret_cast<float*>(tensor.master.at(arena, first)),
                        .momentum = reinterpret_cast<float*>(tensor.momentum.at(arena, first)),
                        .gradient = tensor.gradient.at(arena, first),
                        .copy = tensor.copy ? tensor.copy->at(arena, first) : nullptr,
                        .count = count,
                        .gradient_dtype = tensor.gradient.dtype,
                        .copy_dtype = tensor.copy ? tensor.copy->dtype : DType::f32,
                        .decays = tensor.decays});
    });
  }
  return chunks;
}

}  // namespace

Binder prepare(Context& context, Instruction&, const Update& update) {
  std::vector<UpdatedTensor> tensors;
  for (const UpdatedParameter& updated : update.parameters) tensors.push_back(tensor_of(context, updated));
  return [tensors = std::move(tensors), rule = context.rule, stream = context.stream, state = update.state,
          overflow = update.overflow](const Arena& arena) -> ComputeFn {
    return [=, table = upload(chunks_of(tensors, arena), stream), at = arena.as<State>(state),
            flag = arena.optional<float>(overflow)] {
      launch_update(rule, table.chunks(), table.count, at, flag, stream);
    };
  };
}

Binder prepare(Context& context, Instruction&, const FindOverflow& search) {
  std::vector<Held> gradients;
  for (const BufferId gradient : search.gradients) gradients.push_back(held(context, gradient));
  return [gradients = std::move(gradients), overflow = search.overflow,
          stream = context.stream](const Arena& arena) -> ComputeFn {
    std::vector<GradientChunk> chunks;
    for (const Held& gradient : gradients)
      split(gradient.elements, [&](std::int64_t first, std::int32_t count) {
        chunks.push_back({.gradient = gradient.at(arena, first), .count = count, .dtype = gradient.dtype});
      });
    return [=, table = upload(chunks, stream), flag = arena.as<float>(overflow)] {
      launch_find_overflow(table.chunks(), table.count, flag, stream);
    };
  };
}

Binder prepare(Context& context, Instruction&, const AdvanceState& advance) {
  return launching(context, [=, scaling = context.rule.loss_scaling, records = context.records](
                                const Arena& arena, cudaStream_t stream) {
    launch_advance_state(scaling, arena.as<State>(advance.state), arena.optional<float>(advance.overflow),
                         records, stream);
  });
}

Binder prepare(Context& context, Instruction&, const UpdateRows& update) {
  const bool decays = context.graph.parameters[update.parameter].decays;
  return launching(
      context, [=, rule = context.rule, gradient_dtype = context.dtype(update.d_rows),
                capacity = context.buffer(update.samples).dims.at(0),
                columns = context.buffer(update.master).dims.at(1)](const Arena& arena, cudaStream_t stream) {
        launch_update_rows(rule,
                           {.master = arena.as<float>(update.master),
                            .momentum = arena.as<float>(update.momentum),
                            .gradient = arena.data(update.d_rows),
                            .gradient_dtype = gradient_dtype,
                            .samples = arena.as<std::int32_t>(update.samples),
                            .sample_count = arena.as<std::int32_t>(update.sample_count),
                            .capacity = capacity,
                            .columns = columns,
                            .weight_decay = decays ? static_cast<float>(rule.weight_decay) : 0},
                           arena.as<State>(update.state), arena.optional<float>(update.overflow), stream);
      });
}

}  // namespace plumb::cuda
