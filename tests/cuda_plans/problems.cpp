#include "problems.h"

#include <cstdio>
#include <set>

#include "models/error.h"
#include "models/resnet50.h"

namespace plumb::cuda {

std::vector<WantedPlan> wanted_plans(const DeviceLimits& gpu, const DescribeOptions& options) {
  const Graph graph = make_resnet50({.batch = kBatch});
  const Program program = plumb::describe(graph, options, gpu);
  std::vector<WantedPlan> wanted;
  std::set<std::string> known;
  for (const Step& step : program.steps) {
    switch (step.kind) {
      case StepKind::conv_forward:
      case StepKind::conv_backward_data:
      case StepKind::conv_backward_weights:
      case StepKind::conv_norm_backward_data: {
        ConvProblem problem = conv_problem(graph, program, step);
        if (!known.insert(text_of(problem)).second) break;
        wanted.push_back({std::move(problem), step.workspace_bytes, step.name});
        break;
      }
      default:
        break;
    }
  }
  return wanted;
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
