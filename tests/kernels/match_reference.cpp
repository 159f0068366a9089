#include "tests/kernels/match_reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/kernels/reference.h"
#include "tests/kernels/tensors.h"

namespace plumb {
namespace {

struct Tolerance {
  double relative = 2e-5, absolute = 2e-6;
};
constexpr Tolerance kOfBf16{3e-2, 1e-3};

void expect_near(const std::vector<float>& actual, const Doubles& truth, const std::string& name,
                 const Tolerance& tolerance) {
  ASSERT_EQ(actual.size(), truth.size()) << name;
  double largest = 0;
  for (double value : truth) largest = std::max(largest, std::abs(value));
  const double allowed = tolerance.relative * largest + tolerance.absolute;
  double worst = 0;
  std::size_t where = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const double error = std::abs(actual[i] - truth[i]);
    if (error <= worst) continue;
    worst = error;
    where = i;
  }
  const bool finite =
      std::all_of(actual.begin(), actual.end(), [](float value) { return std::isfinite(value); });
  EXPECT_TRUE(finite) << name;
  EXPECT_LE(worst, allowed) << name << '[' << where << "] is " << actual[where] << " instead of "
                            << truth[where];
}

}  // namespace

void expect_cpu_matches_reference(const Graph& graph, const TestTensors& tensors,
                                  const GraphRunOptions& options) {
  const bool in_bf16 = options.describe.precision == Precision::bf16;
  const Tolerance tolerance = in_bf16 ? kOfBf16 : Tolerance{};
  const GraphRun run = run_on_cpu(graph, tensors, options);
  const ReferenceTraining truth = reference_train(
      graph, reference_state(tensors), to_double(tensors.images), tensors.labels, options.rule,
      static_cast<double>(options.learning_rate), options.iterations, options.first_sample);
  for (int i = 0; i < options.iterations; ++i) {
    const ReferencePass& pass = truth.passes[i];
    EXPECT_NEAR(run.losses[i], pass.loss, tolerance.relative * std::abs(pass.loss) + tolerance.absolute)
        << "iteration " << i;
    if (in_bf16) continue;  // close logits change places
    EXPECT_EQ(run.metrics[i].top1, pass.top1) << "iteration " << i;
    EXPECT_EQ(run.metrics[i].top5, pass.top5) << "iteration " << i;
  }
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    const std::string& name = graph.parameters[p].name;
    if (graph.parameters[p].trained)
      expect_near(run.first_gradients[p], truth.passes[0].parameter_gradients[p], "gradient of " + name,
                  tolerance);
    expect_near(run.parameters[p], truth.end.parameters[p], "updated " + name, tolerance);
  }
  for (std::size_t s = 0; s < graph.statistics.size(); ++s)
    expect_near(run.statistics[s], truth.end.statistics[s], graph.statistics[s].name, tolerance);
}

void expect_cpu_matches_reference(const Graph& graph, const GraphRunOptions& options) {
  expect_cpu_matches_reference(graph, random_tensors(graph, 7), options);
}

}  // namespace plumb
