// The instructions at the end of an iteration on a GPU.
#include <optional>
#include <string>
#include <utility>

#include "kernels/cuda/plan/storage.h"

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

}  // namespace

void lower_update(Lowering& lowering, bool scale_loss) {
  std::optional<BufferId> overflow;
  if (scale_loss) overflow.emplace(find_overflow(lowering));
  const Tensors& tensors = lowering.tensors();
  for (const auto& [parameter, rows] : tensors.sampled_rows)
    add_update_rows(lowering, parameter, rows, lowering.graph.parameters[parameter].name + ".update_rows",
                    overflow)
        .op = lowering.graph.ops.size() - 1;  // the margin loss
  Update update{.state = tensors.state, .overflow = overflow, .parameters = {}};
  for (ParameterId id = 0; id < tensors.parameters.size(); ++id)
    if (lowering.graph.parameters[id].trained && !tensors.sampled_rows.contains(id))
      update.parameters.push_back(updated_parameter(tensors, id));
  add(lowering, "update", std::move(update));
  add(lowering, "advance_state", AdvanceState{.state = tensors.state, .overflow = overflow});
}

}  // namespace plumb::cuda
