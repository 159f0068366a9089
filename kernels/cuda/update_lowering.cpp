#include "kernels/cuda/update_lowering.h"

#include <optional>
#include <string>
#include <utility>

namespace plumb::cuda {
namespace {

Instruction& add(Lowering& lowering, std::string name, Operation operation) {
  return add_instruction(
      lowering.program, {.name = std::move(name), .operation = std::move(operation), .phase = Phase::update});
}

BufferId find_overflow(Lowering& lowering) {
  FindOverflow search{
      .overflow = add_buffer(lowering.program,
                             {.name = "overflow", .role = Role::overflow, .dims = {1}, .persistent = true}),
      .gradients = {}};
  for (ParameterId id = 0; id < lowering.graph.parameters.size(); ++id)
    if (lowering.graph.parameters[id].trained)
      search.gradients.emplace_back(lowering.tensors().parameters[id].gradient);
  const BufferId overflow = search.overflow;
  add(lowering, "find_overflow", std::move(search));
  return overflow;
}

// The margin loss of these class centres.
std::size_t op_of(const Graph& graph, ParameterId weight) {
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const auto* loss = std::get_if<MarginLoss>(&graph.ops[i]);
    if (loss && loss->weight == weight) return i;
  }
  return kNone;
}

void update_rows(Lowering& lowering, ParameterId weight, const SampledRows& rows,
                 const std::optional<BufferId>& overflow) {
  const ParameterBuffers& buffers = lowering.tensors().parameters[weight];
  Instruction& instruction = add(lowering, lowering.graph.parameters[weight].name + ".update_rows",
                                 UpdateRows{.parameter = weight,
                                            .master = buffers.master,
                                            .momentum = buffers.momentum,
                                            .d_rows = buffers.gradient,
                                            .samples = rows.samples,
                                            .sample_count = rows.count,
                                            .state = lowering.tensors().state,
                                            .overflow = overflow});
  instruction.op = op_of(lowering.graph, weight);
  // Only the sampled rows of master and momentum are read and written.
  const Buffer& gradient = lowering.program.buffers[buffers.gradient];
  const double elements = static_cast<double>(gradient.bytes) / static_cast<double>(bytes_of(gradient.dtype));
  instruction.work.bytes = static_cast<double>(gradient.bytes) + elements * 4 * sizeof(float);
}

}  // namespace

void lower_update(Lowering& lowering, bool scale_loss) {
  std::optional<BufferId> overflow;
  if (scale_loss) overflow.emplace(find_overflow(lowering));
  const Tensors& tensors = lowering.tensors();
  for (const auto& [parameter, rows] : tensors.sampled_rows) update_rows(lowering, parameter, rows, overflow);
  Update update{.state = tensors.state, .overflow = overflow, .parameters = {}};
  for (ParameterId id = 0; id < tensors.parameters.size(); ++id)
    if (lowering.graph.parameters[id].trained && !tensors.sampled_rows.contains(id))
      update.parameters.push_back(updated_parameter(tensors, id));
  add(lowering, "update", std::move(update));
  add(lowering, "advance_state", AdvanceState{.state = tensors.state, .overflow = overflow});
}

}  // namespace plumb::cuda
