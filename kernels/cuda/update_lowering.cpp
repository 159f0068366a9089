#include "kernels/cuda/update_lowering.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

namespace plumb::cuda {
namespace {

Step& add(Lowering& lowering, std::string name, StepKind kind, std::vector<BufferUse> uses) {
  Step step{.name = std::move(name), .kind = kind, .phase = Phase::update, .uses = std::move(uses)};
  step.work.bytes = memory_traffic_bytes(lowering.program, step.uses);
  return add_step(lowering.program, std::move(step));
}

BufferId find_overflow(Lowering& lowering) {
  const BufferId overflow = add_buffer(
      lowering.program, {.name = "overflow", .role = Role::overflow, .dims = {1}, .persistent = true});
  std::vector<BufferUse> uses{writes(overflow)};
  for (ParameterId id = 0; id < lowering.parameters.size(); ++id)
    if (lowering.graph.parameters[id].trained) uses.push_back(reads(lowering.parameters[id].gradient));
  add(lowering, "find_overflow", StepKind::find_overflow, std::move(uses));
  return overflow;
}

// Of master and momentum only the sampled rows are read and written.
void update_rows(Lowering& lowering, const SampledCentres& centres, ParameterId weight,
                 const std::optional<BufferId>& overflow) {
  const ParameterBuffers& buffers = lowering.parameters[weight];
  std::vector<BufferUse> uses{updates(buffers.master), updates(buffers.momentum),   reads(buffers.gradient),
                              reads(centres.samples),  reads(centres.sample_count), reads(lowering.state)};
  if (overflow) uses.push_back(reads(*overflow));
  Step& step = add(lowering, lowering.graph.parameters[weight].name + ".update_rows", StepKind::update_rows,
                   std::move(uses));
  step.op = centres.op;
  step.parameter = weight;
  const Buffer& gradient = lowering.program.buffers[buffers.gradient];
  const double elements = static_cast<double>(gradient.bytes) / static_cast<double>(bytes_of(gradient.dtype));
  step.work.bytes = static_cast<double>(gradient.bytes) + elements * 4 * sizeof(float);
}

}  // namespace

void lower_update(Lowering& lowering, const std::vector<SampledCentres>& sampled, bool scale_loss) {
  std::optional<BufferId> overflow;
  if (scale_loss) overflow.emplace(find_overflow(lowering));
  std::vector<BufferUse> state_uses{updates(lowering.state)}, update_uses{reads(lowering.state)};
  if (overflow) {
    state_uses.push_back(reads(*overflow));
    update_uses.push_back(reads(*overflow));
  }
  std::set<ParameterId> by_rows;
  for (const SampledCentres& centres : sampled) {
    const ParameterId weight = std::get<MarginLoss>(lowering.graph.ops[centres.op]).weight;
    by_rows.insert(weight);
    update_rows(lowering, centres, weight, overflow);
  }
  for (ParameterId id = 0; id < lowering.parameters.size(); ++id) {
    if (!lowering.graph.parameters[id].trained || by_rows.contains(id)) continue;
    const ParameterBuffers& buffers = lowering.parameters[id];
    update_uses.insert(update_uses.end(),
                       {updates(buffers.master), updates(buffers.momentum), reads(buffers.gradient)});
    for (BufferId copy : buffers.copies) update_uses.push_back(writes(copy));
  }
  add(lowering, "update", StepKind::update, std::move(update_uses));
  add(lowering, "advance_state", StepKind::advance_state, std::move(state_uses));
}

}  // namespace plumb::cuda
