#include "kernels/cuda/optimizer.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/cuda/binding.h"
#include "kernels/cuda/runtime.h"

namespace plumb::cuda {
namespace {

// A table in device memory, outside of the arena (some 200 KB for a ResNet-50); it lives as long as the
// callables that hold it.
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

std::int64_t elements_held(const Buffer& buffer) {
  return static_cast<std::int64_t>(buffer.bytes / bytes_of(buffer.dtype));
}

// Calls add(first element, elements) for each share of a tensor.
template <typename Add>
void split(std::int64_t elements, const Add& add) {
  for (std::int64_t first = 0; first < elements; first += kChunkElements)
    add(first, static_cast<std::int32_t>(std::min(kChunkElements, elements - first)));
}

// A tensor that the kernels see, and where it begins.
struct Held {
  BufferId buffer = 0;
  DType dtype = DType::f32;
  std::byte* at(const Arena& arena, std::int64_t element) const {
    return arena.data(buffer) + static_cast<std::size_t>(element) * bytes_of(dtype);
  }
};

struct UpdatedTensor {
  Held master, momentum, gradient;
  std::optional<Held> copy;
  std::int64_t elements = 0;
  bool decays = false;
};

bool decays(const Graph& graph, const std::string& name) {
  const auto found = std::find_if(graph.parameters.begin(), graph.parameters.end(),
                                  [&](const Parameter& parameter) { return parameter.name == name; });
  if (found == graph.parameters.end()) throw std::logic_error("the update writes " + name + ", no parameter");
  return found->decays;
}

UpdatedTensor tensor_of(const Context& context, const ParameterBuffers& buffers) {
  const std::vector<Buffer>& all = context.program.buffers;
  const Buffer& master = all[buffers.master];
  const auto held = [&](BufferId id) {
    if (elements_held(all[id]) != elements_held(master))
      throw std::logic_error(all[id].name + " and " + master.name + " differ in size");
    return Held{id, all[id].dtype};
  };
  if (buffers.copies.size() > 1) throw std::logic_error("the update writes one copy of " + master.name);
  UpdatedTensor tensor{.master = held(buffers.master),
                       .momentum = held(buffers.momentum),
                       .gradient = held(buffers.gradient),
                       .copy = {},
                       .elements = elements_held(master),
                       .decays = decays(context.graph, master.name)};
  if (!buffers.copies.empty()) tensor.copy = held(buffers.copies.front());
  return tensor;
}

std::vector<UpdateChunk> chunks_of(const std::vector<UpdatedTensor>& tensors, const Arena& arena) {
  std::vector<UpdateChunk> chunks;
  for (const UpdatedTensor& tensor : tensors) {
    split(tensor.elements, [&](std::int64_t first, std::int32_t count) {
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

std::optional<BufferId> overflow_of(const Program& program, const Step& step) {
  if (step.uses.size() < 2 || program.buffers[step.uses[1].buffer].role != Role::overflow)
    return std::nullopt;
  return step.uses[1].buffer;
}

const float* address_of(const Arena& arena, const std::optional<BufferId>& overflow) {
  return overflow ? arena.as<float>(*overflow) : nullptr;
}

Finish prepare_parameter_update(const Context& context, const Step& step) {
  std::vector<UpdatedTensor> tensors;
  for (const ParameterBuffers& buffers : updated_parameters(context.program, step))
    tensors.push_back(tensor_of(context, buffers));
  return [tensors = std::move(tensors), rule = context.rule, stream = context.stream,
          state = step.uses[0].buffer,
          overflow = overflow_of(context.program, step)](const Arena& arena) -> ComputeFn {
    return [=, table = upload(chunks_of(tensors, arena), stream), at = arena.as<State>(state),
            flag = address_of(arena, overflow)] {
      launch_update(rule, table.chunks(), table.count, at, flag, stream);
    };
  };
}

Finish prepare_find_overflow(const Context& context, const Step& step) {
  std::vector<std::pair<Held, std::int64_t>> gradients;
  for (std::size_t use = 1; use < step.uses.size(); ++use) {
    const Buffer& buffer = context.buffer(step, use);
    gradients.push_back({{step.uses[use].buffer, buffer.dtype}, elements_held(buffer)});
  }
  return [gradients = std::move(gradients), overflow = step.uses[0].buffer,
          stream = context.stream](const Arena& arena) -> ComputeFn {
    std::vector<GradientChunk> chunks;
    for (const auto& [gradient, elements] : gradients) {
      split(elements, [&, held = gradient](std::int64_t first, std::int32_t count) {
        chunks.push_back({.gradient = held.at(arena, first), .count = count, .dtype = held.dtype});
      });
    }
    return [=, table = upload(chunks, stream), flag = arena.as<float>(overflow)] {
      launch_find_overflow(table.chunks(), table.count, flag, stream);
    };
  };
}

Finish prepare_advance_state(const Context& context, const Step& step) {
  return [scaling = context.rule.loss_scaling, state = step.uses[0].buffer, stream = context.stream,
          overflow = overflow_of(context.program, step),
          records = context.records](const Arena& arena) -> ComputeFn {
    return [=, at = arena.as<State>(state), flag = address_of(arena, overflow)] {
      launch_advance_state(scaling, at, flag, records, stream);
    };
  };
}

// The overflow stands behind all that update_rows always has.
constexpr std::size_t kRowsOverflow = 6;

}  // namespace

Finish prepare_update_rows(Context& context, Step& step) {
  step.workspace_bytes = 0;
  const Buffer &master = context.buffer(step, 0), &gradient = context.buffer(step, 2);
  UpdatedRows rows{
      .gradient_dtype = gradient.dtype,
      .capacity = context.buffer(step, 3).dims.at(0),
      .columns = master.dims.at(1),
      .weight_decay = decays(context.graph, master.name) ? static_cast<float>(context.rule.weight_decay) : 0};
  std::optional<BufferId> overflow;
  if (step.uses.size() > kRowsOverflow) overflow = step.uses[kRowsOverflow].buffer;
  return
      [=, uses = step.uses, rule = context.rule, stream = context.stream](const Arena& arena) -> ComputeFn {
        UpdatedRows at = rows;
        at.master = arena.as<float>(uses[0].buffer);
        at.momentum = arena.as<float>(uses[1].buffer);
        at.gradient = arena.data(uses[2].buffer);
        at.samples = arena.as<std::int32_t>(uses[3].buffer);
        at.sample_count = arena.as<std::int32_t>(uses[4].buffer);
        const auto* state = arena.as<State>(uses[5].buffer);
        return [=, flag = address_of(arena, overflow)] { launch_update_rows(rule, at, state, flag, stream); };
      };
}

std::vector<ParameterBuffers> updated_parameters(const Program& program, const Step& step) {
  std::vector<ParameterBuffers> parameters;
  std::size_t use = overflow_of(program, step) ? 2 : 1;
  while (use + 3 <= step.uses.size()) {
    ParameterBuffers buffers{.master = step.uses[use].buffer,
                             .momentum = step.uses[use + 1].buffer,
                             .gradient = step.uses[use + 2].buffer,
                             .copies = {}};
    for (use += 3; use < step.uses.size() && step.uses[use].access == Access::write; ++use)
      buffers.copies.push_back(step.uses[use].buffer);
    parameters.push_back(std::move(buffers));
  }
  if (use != step.uses.size()) throw std::logic_error(step.name + " ends within a parameter");
  return parameters;
}

Finish prepare_update(Context& context, Step& step) {
  switch (step.kind) {
    case StepKind::update:
      return prepare_parameter_update(context, step);
    case StepKind::find_overflow:
      return prepare_find_overflow(context, step);
    default:
      return prepare_advance_state(context, step);
  }
}

}  // namespace plumb::cuda
