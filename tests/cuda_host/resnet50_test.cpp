// ResNet-50 itself on the emulated GPU, at 64x64: norms over a few pixels would amplify every rounding.
#include "models/resnet50.h"

#include <gtest/gtest.h>

#include "tests/cuda_host/train.h"

namespace plumb {
namespace {

Graph resnet50() {
  return make_resnet50({.batch = 4, .image_size = 64, .classes = 100});
}

TEST(EmulatedResNet50, Fp32MatchesTheCpuDevice) {
  const Graph graph = resnet50();
  const TestTensors tensors = random_tensors(graph, 3);
  const TrainOptions options{};
  expect_same_training(graph, train_on_gpu(graph, tensors, options), train_on_cpu(graph, tensors, options),
                       1e-3);
}

TEST(EmulatedResNet50, Fp16WithFusionIsCloseToFp32) {
  const Graph graph = resnet50();
  const TestTensors tensors = random_tensors(graph, 3);
  TrainOptions options{
      .precision = Precision::fp16, .learning_rate = 0.001F, .iterations = 2, .capture = true};
  options.rule.loss_scaling = {.kind = LossScaling::Kind::dynamic, .initial = 1024};
  const GraphRun run = train_on_gpu(graph, tensors, options), truth = train_on_cpu(graph, tensors, options);
  for (std::size_t i = 0; i < truth.losses.size(); ++i)
    EXPECT_NEAR(run.losses[i], truth.losses[i], 0.02 * truth.losses[i]);
}

}  // namespace
}  // namespace plumb
