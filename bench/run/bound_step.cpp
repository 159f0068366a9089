#include <algorithm>

#include "bench/run/device_memory.h"
#include "bench/run/stages.h"

namespace plumb {
namespace {

constexpr std::int64_t kDrawnAtOnce = std::int64_t{1} << 25;  // elements: 128 MiB

// In pieces: there may be more class centers than fit into host memory.
void draw_class_centres(BoundStep& step, ParameterId centers) {
  const Parameter& parameter = step.plan.graph.parameters[centers];
  const std::int64_t all = parameter.dims[0], columns = parameter.dims[1];
  const std::int64_t at_once = std::clamp<std::int64_t>(kDrawnAtOnce / columns, 1, all);
  std::vector<float> rows(static_cast<std::size_t>(at_once * columns));
  for (std::int64_t row = 0; row < all; row += at_once) {
    rows.resize(static_cast<std::size_t>(std::min(at_once, all - row) * columns));
    draw_rows(parameter, step.options.seed, row, rows);
    step.device->write_rows(centers, row, rows);
  }
}

// Every rank draws its own, which has the same bits everywhere; one tensor at a time is in host memory.
void draw_tensors(BoundStep& step) {
  const Graph& graph = step.plan.graph;
  const std::optional<ParameterId> centers = class_centres(graph);
  for (ParameterId p = 0; p < graph.parameters.size(); ++p)
    if (p == centers)
      draw_class_centres(step, p);
    else
      step.device->write_parameter(p, initial_values(graph.parameters[p], step.options.seed));
  for (StatisticId s = 0; s < graph.statistics.size(); ++s)
    step.device->write_statistic(s, initial_values(graph.statistics[s]));
}

// Sends rank 0's tensors (from --weights) to every rank's device; of a shard each rank writes its own rows.
void distribute_tensors(BoundStep& step, TensorMap tensors) {
  const auto hand_out = [&](const std::string& name, std::int64_t count) -> std::vector<float>& {
    std::vector<float>& values = tensors[name].values;
    values.resize(static_cast<std::size_t>(count));
    step.job.broadcast(values.data(), values.size());
    return values;
  };
  const Graph& graph = step.plan.graph;
  for (ParameterId p = 0; p < graph.parameters.size(); ++p) {
    const Parameter& parameter = graph.parameters[p];
    step.device->write_parameter(p, parameter.shard ? tensors.at(parameter.name).values
                                                    : hand_out(parameter.name, parameter.elements()));
  }
  for (StatisticId s = 0; s < graph.statistics.size(); ++s)
    step.device->write_statistic(s, hand_out(graph.statistics[s].name, graph.statistics[s].channels));
}

void start_state(BoundStep& step) {
  const LossScaling scaling = step.options.loss_scaling.value_or(LossScaling{});
  step.device->write_state(
      {.iteration = 0,
       .first_sample = static_cast<std::uint64_t>(step.job.rank() * step.plan.graph.batch()),
       .learning_rate = static_cast<float>(step.options.learning_rate),
       .gradient_scale = 1 / static_cast<float>(step.job.size()),
       .loss_scale = scaling.kind == LossScaling::Kind::none ? 1 : scaling.initial});
}

}  // namespace

BoundStep::BoundStep(PlannedStep&& step) : PlannedStep(std::move(step)) {
  // Allocates first what can't report how much memory is left; a failure to bind can.
  if (has_collectives(options, job.size()))
    communicator = make_communicator(job, options.comm, ranks_per_gpu > 1, *device, plan.program);
  job.together([&] { device->bind(plan.program, plan.memory); });
  if (options.weights.empty())
    job.together([&] { draw_tensors(*this); });
  else
    distribute_tensors(*this, std::move(given));
  start_state(*this);
  source->write_lasting([&](std::int64_t first_image, const Batch& part) {
    device->write_batch(first_image, part.images, part.labels);
  });
}

TensorFile read_tensors(const Graph& graph, const Device& device) {
  TensorFile file;
  for (ParameterId p = 0; p < graph.parameters.size(); ++p) {
    Tensor& tensor = file.floats[graph.parameters[p].name];
    tensor.dims = graph.parameters[p].dims;
    tensor.values.resize(static_cast<std::size_t>(graph.parameters[p].elements()));
    device.read_parameter(p, tensor.values);
  }
  for (StatisticId s = 0; s < graph.statistics.size(); ++s) {
    Tensor& tensor = file.floats[graph.statistics[s].name];
    tensor.dims = {graph.statistics[s].channels};
    tensor.values.resize(static_cast<std::size_t>(graph.statistics[s].channels));
    device.read_statistic(s, tensor.values);
  }
  return file;
}

TensorFile gather_tensors(const Job& job, const Graph& graph, const Device& device) {
  TensorFile file = read_tensors(graph, device);
  for (const Parameter& parameter : graph.parameters) {
    if (!parameter.shard) continue;
    Tensor& tensor = file.floats[parameter.name];
    tensor.dims.front() = parameter.shard->all_rows;
    tensor.values = job.concatenate(tensor.values);
  }
  return file;
}

}  // namespace plumb
