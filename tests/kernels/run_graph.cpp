#include "tests/kernels/run_graph.h"

#include <memory>
#include <optional>
#include <span>

#include "kernels/program/describe.h"
#include "kernels/program/memory_plan.h"
#include "kernels/program/program.h"
#include "models/weights.h"

namespace plumb {
namespace {

std::vector<std::vector<float>> gradients_of(const Device& device, const Graph& graph) {
  std::vector<std::vector<float>> gradients;
  for (ParameterId p = 0; p < graph.parameters.size(); ++p) {
    gradients.emplace_back(graph.parameters[p].trained ? graph.parameters[p].elements() : 0);
    if (graph.parameters[p].trained) device.read_gradient(p, gradients.back());
  }
  return gradients;
}

void run_instructions(const Program& program) {
  for (const Instruction& instruction : program.instructions)
    if (!instruction.as<Collective>()) instruction.run();
}

}  // namespace

void write_tensors(Device& device, const Graph& graph, const TestTensors& tensors) {
  const std::optional<ParameterId> centers = class_centres(graph);
  for (ParameterId p = 0; p < tensors.parameters.size(); ++p) {
    const std::span<const float> values = tensors.parameters[p];
    if (p != centers) {
      device.write_parameter(p, values);
      continue;
    }
    const std::int64_t half = graph.parameters[p].dims[0] / 2;
    const auto first = static_cast<std::size_t>(half * graph.parameters[p].dims[1]);
    device.write_rows(p, 0, values.first(first));
    device.write_rows(p, half, values.subspan(first));
  }
  for (StatisticId s = 0; s < tensors.statistics.size(); ++s)
    device.write_statistic(s, tensors.statistics[s]);
}

void read_tensors(const Device& device, const Graph& graph, GraphRun& run) {
  run.gradients = gradients_of(device, graph);
  for (ParameterId p = 0; p < graph.parameters.size(); ++p) {
    run.parameters.emplace_back(graph.parameters[p].elements());
    device.read_parameter(p, run.parameters.back());
  }
  for (StatisticId s = 0; s < graph.statistics.size(); ++s) {
    run.statistics.emplace_back(graph.statistics[s].channels);
    device.read_statistic(s, run.statistics.back());
  }
}

GraphRun run_on_cpu(const Graph& graph, const TestTensors& tensors, const GraphRunOptions& options) {
  const std::unique_ptr<Device> device =
      cpu::make_device({.choice = DeviceChoice::cpu, .threads = options.threads});
  Program program = describe(graph, options.describe, device->limits());
  device->prepare(graph, options.rule, program);
  device->bind(program, plan_memory(program));
  write_tensors(*device, graph, tensors);
  device->write_batch(0, tensors.images, tensors.labels);
  device->write_state({.first_sample = options.first_sample, .learning_rate = options.learning_rate});

  GraphRun run;
  for (int i = 0; i < options.iterations; ++i) {
    run_instructions(program);
    run.metrics.push_back(device->metrics(i));
    run.losses.push_back(run.metrics.back().loss);
    if (i == 0) run.first_gradients = gradients_of(*device, graph);
  }
  read_tensors(*device, graph, run);
  return run;
}

}  // namespace plumb
