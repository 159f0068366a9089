// Several training steps in a row on the CPU device: updates, running statistics, and tensors copied to and
// from the device.
#include <gtest/gtest.h>

#include "tests/kernels/match_reference.h"

namespace plumb {
namespace {

Graph small_network() {
  GraphBuilder b({3, 6, 6, 3});
  const ValueId first =
      b.norm(b.conv(GraphBuilder::kImages, 17, {.kernel = 3, .padding = 1}), Activation::relu);
  const ValueId second = b.norm(b.conv(first, 17, {}), Activation::relu, first);
  return b.classify(b.max_pool(second, 2, 2, 0), 11);
}

// A large decay, so that omitting it would show.
constexpr double kDecay = 0.05;

TEST(CpuTraining, SgdMatchesTheReference) {
  expect_cpu_matches_reference(
      small_network(), {.rule = {Optimizer::sgd, 0.875, kDecay}, .learning_rate = 0.03f, .iterations = 4});
}

TEST(CpuTraining, NagMatchesTheReference) {
  expect_cpu_matches_reference(
      small_network(), {.rule = {Optimizer::nag, 0.875, kDecay}, .learning_rate = 0.03f, .iterations = 4});
}

TEST(CpuTraining, ParametersWithoutDecayDontDecay) {
  Graph graph = small_network();
  for (std::size_t p = 0; p < graph.parameters.size(); p += 2) graph.parameters[p].decays = false;
  for (Optimizer optimizer : {Optimizer::sgd, Optimizer::nag})
    expect_cpu_matches_reference(graph,
                                 {.rule = {optimizer, 0.9, kDecay}, .learning_rate = 0.03f, .iterations = 3});
}

TEST(CpuTraining, NoMomentumIsPlainDescent) {
  expect_cpu_matches_reference(small_network(),
                               {.rule = {Optimizer::sgd, 0.0, 0.0}, .learning_rate = 0.05f, .iterations = 3});
}

TEST(CpuTraining, OneThreadMatchesTheReferenceToo) {
  expect_cpu_matches_reference(
      small_network(),
      {.rule = {Optimizer::sgd, 0.875, kDecay}, .learning_rate = 0.03f, .iterations = 2, .threads = 1});
}

TEST(CpuTraining, ParametersComeBackAsTheyWereWritten) {
  const Graph graph = small_network();
  const TestTensors tensors = random_tensors(graph, 3);
  const GraphRun run = run_on_cpu(graph, tensors, {.learning_rate = 0.0f});
  EXPECT_EQ(run.parameters, tensors.parameters);
}

TEST(CpuTraining, RepeatsBitForBit) {
  const Graph graph = small_network();
  const TestTensors tensors = random_tensors(graph, 3);
  const GraphRun once = run_on_cpu(graph, tensors, {.iterations = 3});
  const GraphRun again = run_on_cpu(graph, tensors, {.iterations = 3});
  EXPECT_EQ(once.losses, again.losses);
  EXPECT_EQ(once.parameters, again.parameters);
}

}  // namespace
}  // namespace plumb
