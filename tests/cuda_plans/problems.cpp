#include "problems.h"

#include <cstdio>
#include <set>

#include "kernels/cuda/depthwise_shape.h"
#include "models/arcface.h"
#include "models/error.h"
#include "models/resnet50.h"

namespace plumb::cuda {

namespace {

bool asks_for_a_plan(const Graph& graph, const Step& step) {
  switch (step.kind) {
    case StepKind::conv_forward:
    case StepKind::conv_backward_data:
    case StepKind::conv_backward_weights:
    case StepKind::conv_norm_backward_data:
      return !is_depthwise(graph, std::get<Conv>(graph.ops[step.op]));
    default:
      return false;
  }
}

std::vector<WantedPlan> plans_of(const std::vector<Graph>& graphs, const DeviceLimits& gpu,
                                 const DescribeOptions& options) {
  std::vector<WantedPlan> wanted;
  std::set<std::string> known;
  for (const Graph& graph : graphs) {
    const Program program = plumb::describe(graph, options, gpu);
    for (const Step& step : program.steps) {
      if (!asks_for_a_plan(graph, step)) continue;
      ConvProblem problem = conv_problem(graph, program, step);
      if (known.insert(text_of(problem)).second)
        wanted.push_back({std::move(problem), step.workspace_bytes, graph.model + " " + step.name});
    }
  }
  return wanted;
}

}  // namespace

std::vector<WantedPlan> wanted_plans(const DeviceLimits& gpu, const DescribeOptions& options) {
  return plans_of({make_resnet50({.batch = kBatch})}, gpu, options);
}

std::vector<WantedPlan> wanted_face_plans(const DeviceLimits& gpu, const DescribeOptions& options) {
  std::vector<Graph> graphs;
  for (const Backbone backbone : {Backbone::r50, Backbone::r100, Backbone::y1})
    graphs.push_back(make_arcface({.backbone = backbone, .batch = kBatch, .classes = 1000}));
  return plans_of(graphs, gpu, options);
}

Planned try_plan(ConvEngine& engine, const ConvProblem& problem, std::size_t workspace_limit) {
  Planned planned;
  try {
    const auto plan = engine.plan(problem, workspace_limit);
    planned.built = true;
    planned.workspace_bytes = plan->workspace_bytes();
    planned.text = plan->engine();
  } catch (const Error& error) {
    planned.text = error.what();
  }
  std::printf("%-3s %8.1f MiB  %s: %s\n", planned.built ? "yes" : "no",
              static_cast<double>(planned.workspace_bytes) / (1 << 20), text_of(problem).c_str(),
              planned.built ? planned.text.c_str() : "none");
  return planned;
}

std::string test_name(const AbsentGpu& gpu, Precision precision) {
  return "sm_" + std::to_string(gpu.limits().compute_capability) + "_" + std::string(name_of(precision));
}

}  // namespace plumb::cuda
