// What must hold before and after a run for its numbers to be believed.
#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/text.h"
#include "bench/run/device_memory.h"
#include "bench/run/run_record.h"

namespace plumb {
namespace {

// Parameters and running statistics on the device, in public order and layout.
struct ModelState {
  std::uint64_t checksum = kFnvOffset;  // of parameters that all ranks have alike
  std::string not_finite;               // the first tensor that holds NaN or infinity
  std::vector<TensorChecksum> tensors;  // of a deterministic run's parameters and their last gradients
};

ModelState read_state(const BoundStep& step, bool after_training) {
  const Graph& graph = step.plan.graph;
  ModelState state;
  std::vector<float> values;
  const auto note_if_not_finite = [&](const std::string& name) {
    if (state.not_finite.empty() &&
        !std::ranges::all_of(values, [](float value) { return std::isfinite(value); }))
      state.not_finite = name;
  };
  for (ParameterId p = 0; p < graph.parameters.size(); ++p) {
    const Parameter& parameter = graph.parameters[p];
    values.resize(static_cast<std::size_t>(parameter.elements()));
    step.device->read_parameter(p, values);
    if (!parameter.shard) state.checksum = fnv1a(values, state.checksum);
    note_if_not_finite(parameter.name);
    if (!after_training || !step.options.deterministic) continue;
    const std::uint64_t sum = fnv1a(values);
    step.device->read_gradient(p, values);
    state.tensors.push_back(
        {parameter.name, fmt::format("{:016x}", sum), fmt::format("{:016x}", fnv1a(values))});
  }
  for (StatisticId s = 0; s < graph.statistics.size(); ++s) {
    values.resize(static_cast<std::size_t>(graph.statistics[s].channels));
    step.device->read_statistic(s, values);
    note_if_not_finite(graph.statistics[s].name);
  }
  return state;
}

void carry_out(BoundStep& step, const Collective& collective, DeviceMemory& memory) {
  Communicator& communicator = *step.communicator;
  try {
    communicator.wait(communicator.start(collective, step.device->data(collective.buffer)));
    wait_for_lane(*step.device, &communicator, Lane::communication);
  } catch (const Error&) {
    memory.abandon();
    throw;
  }
}

void check(BoundStep& step, const Instruction& instruction, DeviceMemory& memory,
           const MessageDamage& damage) {
  const Collective& collective = *instruction.as<Collective>();
  const MessagePattern pattern(collective, step.job.rank(), step.job.size());
  memory.fill(collective, pattern, collective.buffer);
  carry_out(step, collective, memory);
  const MessagePattern::Wrong wrong = memory.check(collective, pattern, damage);
  memory.overwrite(collective, std::byte{0});  // gaps between gradients must hold zeros
  step.job.together([&] {
    if (wrong.elements > 0)
      throw Error(
          ExitCode::verification_failed,
          "{0} ({1} {2} over {3}) is wrong on rank {4} on {5}: element {6} is {7} instead of {8}; {9} "
          "are wrong: run bench_allreduce, or try another --comm",
          instruction.name, collective.elements, name_of(collective.dtype), step.communicator->name(),
          step.job.rank(), step.job.host(), wrong.first, wrong.found, wrong.wanted, wrong.elements);
  });
}

}  // namespace

void check_exchange(BoundStep& step, const MessageDamage& damage) {
  DeviceMemory memory(*step.device);
  for (const Instruction& instruction : step.plan.program.instructions)
    if (instruction.as<Collective>()) check(step, instruction, memory, damage);
}

std::uint64_t parameter_checksum(const BoundStep& step) {
  return read_state(step, false).checksum;
}

void check_run(const BoundStep& step, std::uint64_t initial_checksum, RunRecord& record) {
  const Job& job = step.job;
  const BenchOptions& options = step.options;
  // The loss alone doesn't show NaN: one that meets a ReLU becomes 0 there.
  const ModelState state = read_state(step, true);
  record.tensors = state.tensors;
  const std::vector<std::string> not_finite = job.all_gather(state.not_finite);
  const std::vector<std::string> checksums = job.all_gather(std::to_string(state.checksum));
  const auto odd =
      std::ranges::find_if(checksums, [&](const std::string& sum) { return sum != checksums.front(); });
  const bool identical = !options.check || odd == checksums.end();
  // A learning rate of 0 leaves parameters where they were.
  const bool moved =
      !options.check || options.learning_rate == 0 || checksums.front() != std::to_string(initial_checksum);
  const auto bad = std::ranges::find_if_not(record.loss, [](double loss) { return std::isfinite(loss); });
  const auto poisoned =
      std::ranges::find_if_not(not_finite, [](const std::string& name) { return name.empty(); });
  record.checks.update({{"replicas_identical", identical},
                        {"parameters_moved", moved},
                        {"loss_finite", bad == record.loss.end()},
                        {"tensors_finite", poisoned == not_finite.end()}});
  if (!options.check)
    record.checks.update({{"replicas_identical", "skipped"}, {"parameters_moved", "skipped"}});
  std::string failure;
  if (bad != record.loss.end())
    failure = fmt::format(
        "the loss is not finite at iteration {}, so this run is not a measurement; lower --lr or check the "
        "data",
        bad - record.loss.begin());
  else if (poisoned != not_finite.end())
    failure = fmt::format(
        "tensor {} of rank {} is not finite after the run, which is not a measurement; lower --lr or check "
        "the data",
        *poisoned, poisoned - not_finite.begin());
  else if (!identical)
    failure = fmt::format(
        "the parameters of rank {} differ from rank 0's after the run: an allreduce lost or changed data, "
        "this run is not a measurement",
        odd - checksums.begin());
  else if (!moved && record.skipped_iterations == std::ssize(record.loss_scale) && !record.loss_scale.empty())
    failure = fmt::format(
        "the gradients of all {} steps overflowed, the last at a loss scale of {}, so no parameter has "
        "moved: give a lower --loss-scale, more --iters for it to fall, or --bf16 or --fp32",
        record.skipped_iterations, record.loss_scale.back());
  else if (!moved)
    failure = "no parameter has moved during the run: the update did nothing, this run is not a measurement";
  job.together([&] {
    if (job.rank() == 0 && !failure.empty()) throw Error(ExitCode::verification_failed, failure);
  });
}

}  // namespace plumb
