#include "tests/kernels/margin_setup.h"

#include <algorithm>
#include <memory>
#include <random>

#include "kernels/program/describe.h"
#include "kernels/program/memory_plan.h"
#include "kernels/program/program.h"
#include "models/margin_head.h"

namespace plumb {
namespace {

template <typename T>
std::vector<T> copy_of(Device& device, BufferId id, std::int64_t count) {
  const auto* values = reinterpret_cast<const T*>(device.data(id));
  return {values, values + count};
}

}  // namespace

Graph margin_graph(const MarginSetup& setup, int rank) {
  const ClassShard shard = class_shard(setup.classes, rank, setup.ranks);
  Graph graph{.model = "test"};
  graph.values.push_back({"images", {setup.images, 1, 1, setup.embedding}});
  graph.parameters.push_back({.name = "head.weight", .dims = {shard.count, setup.embedding}});
  if (setup.head != Head::replicated) graph.parameters[0].shard = RowShard{shard.first, setup.classes};
  graph.ops.push_back(MarginLoss{.name = "head",
                                 .in = 0,
                                 .weight = 0,
                                 .classes = setup.classes,
                                 .first_class = shard.first,
                                 .margins = setup.margins,
                                 .scale = setup.scale,
                                 .gradient = setup.gradient,
                                 .head = setup.head,
                                 .rank = rank,
                                 .world_size = setup.ranks,
                                 .sample_rate = setup.sample_rate,
                                 .seed = 5});
  return graph;
}

MarginRun run_margin(const MarginSetup& setup, const MarginTensors& tensors) {
  const Graph graph = margin_graph(setup, 0);
  const auto device = cpu::make_device({.choice = DeviceChoice::cpu, .threads = setup.threads});
  Program program = describe(graph, {}, device->limits());
  device->prepare(graph, setup.rule, program);
  device->bind(program, plan_memory(program));
  device->write_parameter(0, tensors.centers);
  device->write_batch(tensors.features, tensors.labels);
  device->write_state({.learning_rate = setup.learning_rate});
  MarginRun run;
  for (int i = 0; i < setup.iterations; ++i) {
    for (const Instruction& instruction : program.instructions) {
      instruction.run();
      // Before another instruction overwrites it.
      if (const auto* backward = instruction.as<MarginFeaturesBackward>())
        run.feature_gradient = copy_of<float>(*device, backward->d_features, setup.images * setup.embedding);
    }
    const IterationMetrics metrics = device->metrics(static_cast<std::uint64_t>(i));
    run.losses.push_back(metrics.loss);
    run.top1.push_back(metrics.top1);
    for (BufferId id = 0; id < program.buffers.size(); ++id)
      if (program.buffers[id].name == "head.samples")
        run.samples.push_back(copy_of<std::int32_t>(*device, id, program.buffers[id].dims[0]));
  }
  run.centre_gradient.resize(tensors.centers.size());
  device->read_gradient(0, run.centre_gradient);
  run.centers.resize(tensors.centers.size());
  device->read_parameter(0, run.centers);
  return run;
}

MarginTensors random_margin_tensors(const MarginSetup& setup, std::uint32_t seed) {
  std::mt19937 bits(seed);  // the same everywhere, unlike the standard distributions
  const auto even = [&] { return static_cast<float>(bits() / 2147483648.0 - 1.0); };
  MarginTensors tensors;
  tensors.features.resize(static_cast<std::size_t>(setup.images * setup.embedding));
  tensors.centers.resize(static_cast<std::size_t>(setup.classes * setup.embedding));
  std::generate(tensors.features.begin(), tensors.features.end(), even);
  std::generate(tensors.centers.begin(), tensors.centers.end(), even);
  for (std::int64_t i = 0; i < setup.images; ++i) tensors.labels.push_back(bits() % setup.classes);
  return tensors;
}

}  // namespace plumb
