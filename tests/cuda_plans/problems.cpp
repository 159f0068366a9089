#include "problems.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <ranges>
#include <set>

#include "base/error.h"
#include "kernels/program/memory_plan.h"
#include "models/catalogue.h"

namespace plumb::cuda {

namespace {

constexpr std::int64_t kMostImages = 65535;  // device.cpp: limit of a grid's second and third dimension

}  // namespace

Graph make_graph(const Workload& workload, std::int64_t batch) {
  return find_model(workload.model)->make({.batch = batch, .image_size = workload.image_size});
}

DescribeOptions describe_options(const Workload& workload, Precision precision, bool fuse) {
  return {.precision = precision, .fuse = fuse, .fp32_head = workload.model != "resnet50"};
}

std::vector<WantedPlan> wanted_plans(const Graph& graph, const DeviceLimits& gpu,
                                     const DescribeOptions& options) {
  std::vector<WantedPlan> wanted;
  std::set<std::string> known;
  const Program program = plumb::describe(graph, options, gpu);
  for (const Instruction& instruction : program.instructions) {
    const std::optional<ConvProblem> problem = conv_problem(graph, program, instruction);
    if (problem && known.insert(text_of(*problem)).second)
      wanted.push_back({*problem, instruction.workspace_bytes, graph.model + " " + instruction.name});
  }
  return wanted;
}

std::vector<WantedPlan> wanted_plans(const DeviceLimits& gpu, const DescribeOptions& options) {
  return wanted_plans(make_graph({"resnet50"}, kBatch), gpu, options);
}

std::int64_t largest_batch(const Workload& workload, const DeviceLimits& gpu,
                           const DescribeOptions& options) {
  const auto fits = [&](std::int64_t batch) {
    const MemoryPlan memory = plan_memory(plumb::describe(make_graph(workload, batch), options, gpu));
    return static_cast<double>(memory.arena_bytes) <= gpu.memory_bytes;
  };
  return *std::ranges::partition_point(std::views::iota(std::int64_t{1}, kMostImages + 1), fits) - 1;
}

ConvEngine engine_for(const AbsentGpu& gpu, bool deterministic) {
  return make_conv_engine({.deterministic = deterministic, .device_properties_json = gpu.properties_json()});
}

Planned plan_of(const ConvEngine& engine, const ConvProblem& problem, std::size_t workspace_limit) {
  Planned planned;
  try {
    const auto plan = engine.plan(problem, workspace_limit);
    planned.built = true;
    planned.workspace_bytes = plan->workspace_bytes;
    planned.text = plan->engine;
  } catch (const Error& error) {
    planned.text = error.what();
  }
  return planned;
}

Planned try_plan(const ConvEngine& engine, const ConvProblem& problem, std::size_t workspace_limit) {
  Planned planned = plan_of(engine, problem, workspace_limit);
  std::printf("%-3s %8.1f MiB  %s: %s\n", planned.built ? "yes" : "no",
              static_cast<double>(planned.workspace_bytes) / (1 << 20), text_of(problem).c_str(),
              planned.built ? planned.text.c_str() : "none");
  return planned;
}

std::string test_name(const AbsentGpu& gpu, Precision precision) {
  return "sm_" + std::to_string(gpu.limits().compute_capability) + "_" + std::string(name_of(precision));
}

}  // namespace plumb::cuda
