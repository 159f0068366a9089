// Whole training steps of the CUDA Program on the emulated GPU, against the CPU device: small networks.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "tests/cuda_host/train.h"

namespace plumb {
namespace {

// What ResNet-50 is made of: a stem with a max pool, blocks with and without a projection, a stride.
Graph small_resnet(std::int64_t batch = 3, std::int64_t image_size = 20) {
  GraphBuilder b({batch, image_size, image_size, 3});
  ValueId value =
      b.norm(b.conv(GraphBuilder::kImages, 16, {.kernel = 7, .stride = 2, .padding = 3}), Activation::relu);
  value = b.max_pool(value, 3, 2, 1);
  value = b.bottleneck(value, 8, 1);
  value = b.bottleneck(value, 8, 1);
  value = b.bottleneck(value, 16, 2);
  return b.classify(value, 11);
}

// Few channels, odd extents, groups, a norm without ReLU.
Graph odd_network() {
  GraphBuilder b({5, 9, 7, 3});
  const ValueId first =
      b.norm(b.conv(GraphBuilder::kImages, 24, {.kernel = 3, .padding = 1}), Activation::relu);
  const ValueId second = b.norm(b.conv(first, 24, {.kernel = 3, .padding = 1, .groups = 3}));
  const ValueId third = b.norm(b.conv(second, 24, {.kernel = 3, .padding = 1}), Activation::relu, first);
  return b.classify(b.max_pool(third, 2, 2, 0), 7);
}

TrainOptions fp32_steps(int iterations) {
  return {.rule = kTestedRule, .iterations = iterations};
}

// In NHWC the first norm goes back through the max pool, over 10 x 10 and 13 x 13 pixels; in NCHW the pool
// has a backward of its own.
TEST(EmulatedTraining, Fp32MatchesTheCpuDevice) {
  for (const Graph& graph : {small_resnet(), small_resnet(2, 26), odd_network()}) {
    const TestTensors tensors = random_tensors(graph, 3);
    for (int iterations : {1, 3}) {
      TrainOptions options = fp32_steps(iterations);
      const GraphRun truth = train_on_cpu(graph, tensors, options);
      for (const TensorLayout layout : {TensorLayout::nhwc, TensorLayout::nchw}) {
        SCOPED_TRACE(name_of(layout));
        options.layout = layout;
        expect_same_training(graph, train_on_gpu(graph, tensors, options), truth, 1e-4);
      }
    }
  }
}

TEST(EmulatedTraining, NagMatchesTheCpuDevice) {
  const Graph graph = odd_network();
  const TestTensors tensors = random_tensors(graph, 4);
  TrainOptions options = fp32_steps(3);
  options.rule.optimizer = Optimizer::nag;
  expect_same_training(graph, train_on_gpu(graph, tensors, options), train_on_cpu(graph, tensors, options),
                       1e-4);
}

TEST(EmulatedTraining, ParametersWithoutDecayDontDecay) {
  Graph graph = odd_network();
  for (std::size_t p = 0; p < graph.parameters.size(); p += 2) graph.parameters[p].decays = false;
  const TestTensors tensors = random_tensors(graph, 4);
  TrainOptions options = fp32_steps(2);
  options.rule.weight_decay = 0.5;
  expect_same_training(graph, train_on_gpu(graph, tensors, options), train_on_cpu(graph, tensors, options),
                       1e-4);
}

// How far half precision may lead from fp32: per loss; of all parameters, the difference over the change; and
// the least cosine of a tensor's gradient.
struct Distance {
  double loss, change, least_cosine;
};

// Rounding turns one ReLU in 1000 (fp16, 11 bits) or 100 (bf16, 8 bits) the other way, in each of a dozen
// layers, and each time the gradient loses the square root of that: about 0.1 and 0.3. Measured, with and
// without fusion: 0.06 to 0.09 and 0.17 to 0.23. A term that is missing or doubled is off by 0.5 and more.
void expect_close_to_fp32(TrainOptions options, const Distance& allowed) {
  const Graph graph = small_resnet(8, 32);
  const TestTensors tensors = random_tensors(graph, 3);
  options.learning_rate = 0.002F;
  const GraphRun run = train_on_gpu(graph, tensors, options), truth = train_on_cpu(graph, tensors, options);
  for (std::size_t i = 0; i < truth.losses.size(); ++i)
    EXPECT_NEAR(run.losses[i], truth.losses[i], allowed.loss * truth.losses[i]);
  std::vector<float> change, true_change;
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    EXPECT_GT(cosine(run.gradients[p], truth.gradients[p]), allowed.least_cosine) << graph.parameters[p].name;
    for (std::size_t i = 0; i < tensors.parameters[p].size(); ++i) {
      change.push_back(run.parameters[p][i] - tensors.parameters[p][i]);
      true_change.push_back(truth.parameters[p][i] - tensors.parameters[p][i]);
    }
  }
  EXPECT_LT(relative_error(change, true_change), allowed.change);
  for (std::size_t s = 0; s < graph.statistics.size(); ++s)
    EXPECT_LT(relative_error(run.statistics[s], truth.statistics[s]), 0.02) << graph.statistics[s].name;
}

TEST(EmulatedTraining, Fp16IsCloseToFp32WithEveryKindOfFusion) {
  for (int capability : {75, 80, 90, 100}) {
    SCOPED_TRACE("sm_" + std::to_string(capability));
    TrainOptions options = half_steps(Precision::fp16, 1);
    options.compute_capability = capability;
    expect_close_to_fp32(options, {.loss = 0.002, .change = 0.15, .least_cosine = 0.95});
  }
}

TEST(EmulatedTraining, Fp16WithoutFusionIsCloseToFp32) {
  TrainOptions options = half_steps(Precision::fp16, 1);
  options.fuse = false;
  expect_close_to_fp32(options, {.loss = 0.002, .change = 0.15, .least_cosine = 0.95});
}

TEST(EmulatedTraining, Fp16StaysCloseForThreeSteps) {
  expect_close_to_fp32(half_steps(Precision::fp16, 3), {.loss = 0.002, .change = 0.15, .least_cosine = 0.85});
}

// Emulated tensor cores chop factors.
TEST(EmulatedTraining, Tf32StaysCloseForThreeSteps) {
  TrainOptions options = fp32_steps(3);
  options.precision = Precision::tf32;
  expect_close_to_fp32(options, {.loss = 0.002, .change = 0.15, .least_cosine = 0.85});
}

TEST(EmulatedTraining, Bf16IsCloseToFp32) {
  expect_close_to_fp32(half_steps(Precision::bf16, 1), {.loss = 0.01, .change = 0.35, .least_cosine = 0.7});
}

TEST(EmulatedTraining, Bf16StaysCloseForThreeSteps) {
  expect_close_to_fp32(half_steps(Precision::bf16, 3), {.loss = 0.01, .change = 0.35, .least_cosine = 0.55});
}

// Forward is the same to the bit, so no ReLU turns the other way: gradients differ by roundings only. Two
// blocks with a shortcut's convolution and two without, of 128 and 256 channels and an odd number of pixels.
TEST(EmulatedTraining, CompletedGradientsAreThoseOfPlainBlockEnds) {
  GraphBuilder b({3, 20, 20, 3});
  ValueId value = b.norm(b.conv(GraphBuilder::kImages, 16, {.kernel = 3, .stride = 2}), Activation::relu);
  for (const auto& [channels, stride] : {std::pair{32, 1}, {32, 1}, {64, 2}, {64, 1}})
    value = b.bottleneck(value, channels, stride);
  const Graph graph = b.classify(value, 11);
  const TestTensors tensors = random_tensors(graph, 3);
  for (const Precision precision : {Precision::fp16, Precision::bf16}) {
    SCOPED_TRACE(name_of(precision));
    TrainOptions options = half_steps(precision, 1);
    options.compute_capability = 80;
    options.plain = without(graph, {FusedPattern::product_norm});
    const GraphRun completed = train_on_gpu(graph, tensors, options);
    options.plain = without(graph, {FusedPattern::product_norm, FusedPattern::block_end_gradient});
    const GraphRun wanted = train_on_gpu(graph, tensors, options);
    EXPECT_EQ(completed.losses, wanted.losses);
    EXPECT_NE(completed.gradients, wanted.gradients) << "the same instructions ran";
    for (std::size_t p = 0; p < graph.parameters.size(); ++p)
      EXPECT_LT(relative_error(completed.gradients[p], wanted.gradients[p]),
                precision == Precision::fp16 ? 0.002 : 0.015)
          << graph.parameters[p].name;
  }
}

TEST(EmulatedTraining, Fp16OfOddChannelsIsCloseToFp32) {
  const Graph graph = odd_network();
  const TestTensors tensors = random_tensors(graph, 5);
  const TrainOptions options = half_steps(Precision::fp16, 1);
  const GraphRun run = train_on_gpu(graph, tensors, options), truth = train_on_cpu(graph, tensors, options);
  EXPECT_NEAR(run.losses[0], truth.losses[0], 0.01 * truth.losses[0]);
  for (std::size_t p = 0; p < graph.parameters.size(); ++p)
    EXPECT_GT(cosine(run.gradients[p], truth.gradients[p]), 0.99) << graph.parameters[p].name;
}

TEST(EmulatedTraining, ReplaysAreIdenticalToSingleSteps) {
  const Graph graph = small_resnet();
  const TestTensors tensors = random_tensors(graph, 3);
  for (Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16}) {
    TrainOptions options = half_steps(precision, 4);
    const GraphRun eager = train_on_gpu(graph, tensors, options);
    options.capture = true;
    expect_identical(train_on_gpu(graph, tensors, options), eager);
  }
}

TEST(EmulatedTraining, RepeatsBitForBit) {
  const Graph graph = small_resnet();
  const TestTensors tensors = random_tensors(graph, 3);
  const TrainOptions options = half_steps(Precision::fp16, 3);
  expect_identical(train_on_gpu(graph, tensors, options), train_on_gpu(graph, tensors, options));
}

TEST(EmulatedTraining, StampingChangesNothing) {
  const Graph graph = odd_network();
  const TestTensors tensors = random_tensors(graph, 3);
  TrainOptions options = fp32_steps(3);
  const GraphRun plain = train_on_gpu(graph, tensors, options);
  options.stamped_iterations = 2;
  expect_identical(train_on_gpu(graph, tensors, options), plain);
}

TEST(EmulatedTraining, RefusesMoreImagesThanAGridHoldsAsIfTheyDidNotFit) {
  const std::unique_ptr<Device> device = cuda::make_device({.choice = DeviceChoice::cuda});
  for (std::int64_t batch : {65535, 65536}) {
    GraphBuilder b({batch, 1, 1, 3});
    const Graph graph = b.classify(b.norm(b.conv(GraphBuilder::kImages, 8, {}), Activation::relu));
    Program program = describe(graph, {}, device->limits());
    if (batch == 65535) {
      EXPECT_NO_THROW(device->prepare(graph, {}, program));
      continue;
    }
    try {
      device->prepare(graph, {}, program);
      ADD_FAILURE() << "nothing was refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::out_of_memory);
      EXPECT_NE(std::string(error.what()).find("--bs 65536 is more than the 65535"), std::string::npos);
    }
  }
}

TEST(EmulatedTraining, BatchesArriveInTurn) {
  const Graph graph = odd_network();
  const TestTensors tensors = random_tensors(graph, 3);
  TrainOptions options = fp32_steps(6);
  options.other_batches = true;
  const GraphRun truth = train_on_cpu(graph, tensors, options);
  for (const TensorLayout layout : {TensorLayout::nhwc, TensorLayout::nchw}) {
    for (bool capture : {false, true}) {
      SCOPED_TRACE(std::string(name_of(layout)) + (capture ? ", replayed" : ", step by step"));
      options.layout = layout;
      options.capture = capture;
      expect_same_training(graph, train_on_gpu(graph, tensors, options), truth, 1e-4);
    }
  }
}

// So that the test above can fail.
TEST(EmulatedTraining, ABatchThatNobodyWaitsForShows) {
  const Graph graph = odd_network();
  const TestTensors tensors = random_tensors(graph, 3);
  TrainOptions options = fp32_steps(6);
  options.other_batches = true;
  const GraphRun truth = train_on_gpu(graph, tensors, options);
  options.forgets_order = true;
  EXPECT_NE(train_on_gpu(graph, tensors, options).losses, truth.losses);
}

TEST(EmulatedTraining, EveryIterationHasItsWaitForData) {
  const Graph graph = odd_network();
  const TestTensors tensors = random_tensors(graph, 3);
  TrainOptions options = fp32_steps(3);
  for (const bool capture : {false, true}) {
    options.capture = capture;
    for (const bool other_batches : {false, true}) {
      options.other_batches = other_batches;
      for (const IterationMetrics& metrics : train_on_gpu(graph, tensors, options).metrics)
        EXPECT_EQ(metrics.data_wait_seconds > 0, other_batches) << metrics.data_wait_seconds;
    }
  }
}

TEST(EmulatedTraining, AnOverflowSkipsTheStepAndHalvesTheLossScale) {
  const Graph graph = small_resnet();
  const TestTensors tensors = random_tensors(graph, 3);
  TrainOptions options = half_steps(Precision::fp16, 1);
  options.rule.loss_scaling = {.kind = LossScaling::Kind::dynamic, .initial = 1e30F};
  const GraphRun run = train_on_gpu(graph, tensors, options);
  EXPECT_TRUE(run.metrics[0].skipped);
  EXPECT_EQ(run.metrics[0].loss_scale, 1e30F);
  EXPECT_EQ(run.parameters, tensors.parameters);

  options.iterations = 2;
  const GraphRun next = train_on_gpu(graph, tensors, options);
  EXPECT_EQ(next.metrics[1].loss_scale, 0.5e30F);
}

TEST(EmulatedTraining, TheLossScaleGrowsAfterCleanSteps) {
  const Graph graph = odd_network();
  const TestTensors tensors = random_tensors(graph, 3);
  TrainOptions options = half_steps(Precision::fp16, 5);
  options.rule.loss_scaling = {.kind = LossScaling::Kind::dynamic, .initial = 64, .growth_interval = 2};
  options.capture = true;
  const GraphRun run = train_on_gpu(graph, tensors, options);
  std::vector<float> scales;
  for (const IterationMetrics& metrics : run.metrics) scales.push_back(metrics.loss_scale);
  EXPECT_EQ(scales, (std::vector<float>{64, 64, 128, 128, 256}));
}

TEST(EmulatedTraining, TheLossScaleLeavesNoTraceInTheParameters) {
  const Graph graph = small_resnet();
  const TestTensors tensors = random_tensors(graph, 3);
  TrainOptions options = half_steps(Precision::fp16, 2);
  const GraphRun scaled = train_on_gpu(graph, tensors, options);
  options.rule.loss_scaling.initial = 512;
  const GraphRun twice = train_on_gpu(graph, tensors, options);
  for (std::size_t p = 0; p < graph.parameters.size(); ++p)
    EXPECT_LT(relative_error(twice.parameters[p], scaled.parameters[p]), 1e-4) << graph.parameters[p].name;
}

TEST(EmulatedTraining, TensorsComeBackAsTheyWereWritten) {
  const Graph graph = small_resnet();
  const TestTensors tensors = random_tensors(graph, 3);
  for (Precision precision : {Precision::fp32, Precision::fp16}) {
    TrainOptions options = half_steps(precision, 1);
    options.learning_rate = 0;
    EXPECT_EQ(train_on_gpu(graph, tensors, options).parameters, tensors.parameters);
    if (precision != Precision::fp32) continue;
    options.layout = TensorLayout::nchw;
    EXPECT_EQ(train_on_gpu(graph, tensors, options).parameters, tensors.parameters);
  }
}

}  // namespace
}  // namespace plumb
