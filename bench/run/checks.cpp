// What must hold before and after a run for its numbers to be believed.
#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/text.h"
#include "bench/run/device_communicator.h"
#include "bench/run/run_record.h"

namespace plumb {
namespace {

bool finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

// The first running statistic that holds NaN or infinity; empty if none does.
std::string statistic_not_finite(const Graph& graph, const Device& device) {
  std::vector<float> values;
  for (StatisticId s = 0; s < graph.statistics.size(); ++s) {
    values.resize(static_cast<std::size_t>(graph.statistics[s].channels));
    device.read_statistic(s, values);
    if (!finite(values)) return graph.statistics[s].name;
  }
  return "";
}

struct Message {
  std::string name;  // "bucket0.allreduce"
  Collective collective;
};

// One for each kind, dtype and size.
std::vector<Message> distinct_messages(const Program& program) {
  std::vector<Message> messages;
  for (const Instruction& instruction : program.instructions) {
    const auto* collective = instruction.as<Collective>();
    if (!collective) continue;
    const auto is_same = [&](const Message& other) {
      return other.collective.kind == collective->kind && other.collective.dtype == collective->dtype &&
             other.collective.elements == collective->elements;
    };
    if (std::ranges::none_of(messages, is_same)) messages.push_back({instruction.name, *collective});
  }
  return messages;
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

void require_right(const BoundStep& step, const Message& message, const MessagePattern::Wrong& wrong) {
  if (wrong.elements == 0) return;
  throw Error(ExitCode::verification_failed,
              "{0} ({1} {2} over {3}) is wrong on rank {4} on {5}: element {6} is {7} instead of {8}; {9} "
              "are wrong: run bench_allreduce, or try another --comm",
              message.name, message.collective.elements, name_of(message.collective.dtype),
              step.communicator->name(), step.job.rank(), step.job.host(), wrong.first, wrong.found,
              wrong.wanted, wrong.elements);
}

void check(BoundStep& step, const Message& message, DeviceMemory& memory, const MessageDamage& damage) {
  const Collective& collective = message.collective;
  const MessagePattern pattern(collective, step.job.rank(), step.job.size());
  fill_message(memory, collective, pattern, collective.buffer);
  carry_out(step, collective, memory);
  const MessagePattern::Wrong wrong = check_message(memory, collective, pattern, damage);
  overwrite_message(memory, collective, std::byte{0});  // gaps between gradients must hold zeros
  step.job.together([&] { require_right(step, message, wrong); });
}

}  // namespace

void check_exchange(BoundStep& step, const MessageDamage& damage) {
  DeviceMemory memory(*step.device);
  for (const Message& message : distinct_messages(step.plan.program)) check(step, message, memory, damage);
}

ParameterState read_parameter_state(const Graph& graph, const Device& device) {
  ParameterState state{.checksum = kFnvOffset};
  std::vector<float> values;
  for (ParameterId p = 0; p < graph.parameters.size(); ++p) {
    const Parameter& parameter = graph.parameters[p];
    values.resize(static_cast<std::size_t>(parameter.elements()));
    device.read_parameter(p, values);
    if (!parameter.shard) state.checksum = fnv1a(values, state.checksum);
    if (state.not_finite.empty() && !finite(values)) state.not_finite = parameter.name;
  }
  return state;
}

std::vector<TensorChecksum> tensor_checksums(const Graph& graph, const Device& device) {
  const auto checksum = [](const std::vector<float>& values) {
    return fmt::format("{:016x}", fnv1a(values));
  };
  std::vector<TensorChecksum> tensors;
  std::vector<float> values, gradient;
  for (ParameterId p = 0; p < graph.parameters.size(); ++p) {
    const Parameter& parameter = graph.parameters[p];
    values.resize(static_cast<std::size_t>(parameter.elements()));
    gradient.resize(values.size());
    device.read_parameter(p, values);
    device.read_gradient(p, gradient);
    tensors.push_back({parameter.name, checksum(values), checksum(gradient)});
  }
  return tensors;
}

void check_run(const BoundStep& step, std::uint64_t initial_checksum, RunRecord& record) {
  const Job& job = step.job;
  const BenchOptions& options = step.options;
  const Graph& graph = step.plan.graph;
  // The loss alone doesn't show NaN: one that meets a ReLU becomes 0 there.
  const ParameterState state = read_parameter_state(graph, *step.device);
  if (options.deterministic) record.tensors = tensor_checksums(graph, *step.device);
  const std::vector<std::string> not_finite =
      job.all_gather(state.not_finite.empty() ? statistic_not_finite(graph, *step.device) : state.not_finite);
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
  if (!failure.empty() && options.reduce_dtype == ReduceDType::fp16)
    failure += " (--reduce-dtype fp16 overflows beyond 65504; same keeps the gradients as they are)";
  job.together([&] {
    if (job.rank() == 0 && !failure.empty()) throw Error(ExitCode::verification_failed, failure);
  });
}

}  // namespace plumb
