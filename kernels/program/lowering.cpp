#include "kernels/program/lowering.h"

#include <algorithm>
#include <concepts>
#include <utility>
#include <variant>

namespace plumb {
namespace {

bool is_sampled(const Graph& graph, ParameterId parameter) {
  const MarginLoss* loss = graph.margin_loss();
  return loss && loss->head == Head::sampled && loss->weight == parameter;
}

ParameterBuffers add_parameter(Lowering& lowering, ParameterId id, DType weight_gradients) {
  const Parameter& parameter = lowering.graph.parameters[id];
  const auto add = [&](const char* suffix, Role role, DType dtype = DType::f32) {
    return add_buffer(lowering.program, {.name = parameter.name + suffix,
                                         .role = role,
                                         .dtype = dtype,
                                         .dims = parameter.dims,
                                         .persistent = role != Role::activation_gradient,
                                         .sharded = parameter.shard.has_value()});
  };
  ParameterBuffers buffers{.master = add("", Role::parameter)};
  if (parameter.trained) buffers.momentum = add(".momentum", Role::optimizer);
  const DType gradient_type = parameter.dims.size() > 1 ? weight_gradients : DType::f32;
  if (!is_sampled(lowering.graph, id))
    buffers.gradient =
        add(".gradient", parameter.trained ? Role::gradient : Role::activation_gradient, gradient_type);
  return buffers;
}

void add_parameters(Lowering& lowering, const StorageTypes& types) {
  for (ParameterId id = 0; id < lowering.graph.parameters.size(); ++id)
    lowering.tensors().parameters.push_back(add_parameter(lowering, id, types.weight_gradients));
  for (const Statistic& statistic : lowering.graph.statistics)
    lowering.tensors().statistics.push_back(add_buffer(
        lowering.program,
        {.name = statistic.name, .role = Role::statistic, .dims = {statistic.channels}, .persistent = true}));
}

void set_dtype(Buffer& buffer, DType dtype) {
  buffer.bytes = buffer.bytes / bytes_of(buffer.dtype) * bytes_of(dtype);
  buffer.dtype = dtype;
}

BufferId add_half_copy(Lowering& lowering, ParameterId id, DType dtype) {
  ParameterBuffers& buffers = lowering.tensors().parameters[id];
  Buffer copy = lowering.program.buffers[buffers.master];
  set_dtype(copy, dtype);
  copy.name += ".half";
  buffers.copies.push_back(add_buffer(lowering.program, std::move(copy)));
  return buffers.copies.back();
}

template <typename T>
concept Weighted = requires(const T& op) {
  op.weight;
};
template <typename T>
concept Making = requires(const T& op) {
  op.out;
};

// Sampled rows become half when gathered; their gradient has its own buffer.
template <typename T>
void hold_weight(Lowering& lowering, const T& op, DType dtype, DType weight_gradients) {
  if constexpr (std::same_as<T, MarginLoss>)
    if (op.head == Head::sampled) return;
  set_dtype(lowering.program.buffers[lowering.tensors().parameters[op.weight].gradient],
            dtype == DType::f32 ? dtype : weight_gradients);
  if (dtype != DType::f32) lowering.weights[op.weight] = add_half_copy(lowering, op.weight, dtype);
}

void hold_value(Lowering& lowering, ValueId value, DType dtype) {
  const BufferId buffer = lowering.tensors().values[value];
  if (buffer != kNone) set_dtype(lowering.program.buffers[buffer], dtype);
  lowering.gradient_types[value] = dtype;
}

}  // namespace

std::vector<std::int64_t> nchw(const Shape& shape) {
  return {shape.n, shape.c, shape.h, shape.w};
}

BufferId add_buffer(Program& program, Buffer buffer) {
  if (buffer.bytes == 0) {
    buffer.bytes = bytes_of(buffer.dtype);
    for (std::int64_t dim : buffer.dims) buffer.bytes *= static_cast<std::size_t>(dim);
  }
  program.buffers.push_back(std::move(buffer));
  return program.buffers.size() - 1;
}

Instruction& add_instruction(Program& program, Instruction instruction) {
  instruction.work.bytes = 0;
  for (const BufferUse& use : instruction.uses())
    instruction.work.bytes +=
        static_cast<double>(program.buffers[use.buffer].bytes) * (use.access == Access::read_write ? 2 : 1);
  program.instructions.push_back(std::move(instruction));
  return program.instructions.back();
}

Lowering start_lowering(const Graph& graph, const StorageTypes& types, std::size_t state_bytes) {
  Lowering lowering{.graph = graph,
                    .gradients = std::vector<std::vector<Lowering::Contribution>>(graph.values.size()),
                    .op_types = std::vector(graph.ops.size(), types.activations),
                    .gradient_types = std::vector(graph.values.size(), types.activations)};
  add_parameters(lowering, types);
  for (const ParameterBuffers& buffers : lowering.tensors().parameters)
    lowering.weights.push_back(buffers.master);
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    BufferId& held = lowering.tensors().values.emplace_back(kNone);
    if (types.unstored.contains(id)) continue;
    const Value& value = graph.values[id];
    const bool is_input = id == 0;
    Buffer buffer{.name = value.name,
                  .role = is_input ? Role::input : Role::activation,
                  .dtype = types.activations,
                  .dims = nchw(value.shape),
                  .persistent = is_input};
    if (is_input)  // channel padding counts in bytes, not in dims
      buffer.bytes =
          bytes_of(types.activations) *
          static_cast<std::size_t>(value.shape.n * value.shape.h * value.shape.w * types.image_channels);
    held = add_buffer(lowering.program, std::move(buffer));
  }
  lowering.tensors().labels = add_buffer(lowering.program, {.name = "labels",
                                                            .role = Role::input,
                                                            .dtype = DType::i32,
                                                            .dims = {graph.batch()},
                                                            .persistent = true});
  lowering.tensors().state = add_buffer(lowering.program, {.name = "state",
                                                           .role = Role::state,
                                                           .dtype = DType::u8,
                                                           .dims = {static_cast<std::int64_t>(state_bytes)},
                                                           .persistent = true});
  return lowering;
}

void store_in_op_types(Lowering& lowering, DType weight_gradients) {
  const Graph& graph = lowering.graph;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const DType dtype = lowering.op_types[i];
    std::visit(
        [&]<typename T>(const T& op) {
          if constexpr (Making<T>) hold_value(lowering, op.out, dtype);
          if constexpr (Weighted<T>) hold_weight(lowering, op, dtype, weight_gradients);
        },
        graph.ops[i]);
    if (const SoftmaxLoss* loss = std::get_if<SoftmaxLoss>(&graph.ops[i]))
      set_dtype(lowering.program.buffers[lowering.tensors().values[loss->in]], DType::f32);
  }
}

UpdatedParameter updated_parameter(const Tensors& tensors, ParameterId parameter) {
  const ParameterBuffers& buffers = tensors.parameters[parameter];
  return {.parameter = parameter,
          .master = buffers.master,
          .momentum = buffers.momentum,
          .gradient = buffers.gradient,
          .copies = {buffers.copies.begin(), buffers.copies.end()}};
}

Instruction& add_update_rows(Lowering& lowering, ParameterId parameter, const SampledRows& rows,
                             std::string name, std::optional<Read> overflow) {
  const ParameterBuffers& buffers = lowering.tensors().parameters[parameter];
  const Buffer& gradient = lowering.program.buffers[buffers.gradient];
  const auto bytes = static_cast<double>(gradient.bytes);
  Instruction& instruction =
      add_instruction(lowering.program, {.name = std::move(name),
                                         .operation = UpdateRows{.parameter = parameter,
                                                                 .master = buffers.master,
                                                                 .momentum = buffers.momentum,
                                                                 .d_rows = buffers.gradient,
                                                                 .samples = rows.samples,
                                                                 .sample_count = rows.count,
                                                                 .state = lowering.tensors().state,
                                                                 .overflow = overflow},
                                         .phase = Phase::update});
  instruction.work.bytes = bytes + bytes / static_cast<double>(bytes_of(gradient.dtype)) * 4 * sizeof(float);
  return instruction;
}

}  // namespace plumb
