#include "tests/cuda_host/train.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "bench/run/runner.h"
#include "kernels/program/memory_plan.h"
#include "tests/cuda_host/runtime_state.h"

namespace plumb {
namespace {

class RandomBatches final : public BatchSource {
 public:
  explicit RandomBatches(const Graph& graph) : graph_(graph) {}
  PixelBatch next() override {
    const TestTensors tensors = random_tensors(graph_, ++batches_);
    Held& held = held_[batches_ % held_.size()];
    held.pixels.clear();
    for (const float value : tensors.images)
      held.pixels.push_back(static_cast<std::uint8_t>(std::clamp(128 + 40 * value, 0.0F, 255.0F)));
    held.labels.assign(tensors.labels.begin(), tensors.labels.end());
    return {held.pixels, held.labels};
  }
  std::size_t host_bytes() const override { return 0; }
  std::string description() const override { return "random batches"; }

 private:
  struct Held {
    std::vector<std::uint8_t> pixels;
    std::vector<std::int32_t> labels;
  };
  const Graph& graph_;
  std::uint32_t batches_ = 0;
  std::array<Held, 3> held_;  // a batch is valid until the third call
};

constexpr Normalization kNormalization{{0.025F, 0.02F, 0.03F}, {-3.2F, -2.5F, -3.8F}};

GraphRun read_results(const Device& device, const Graph& graph, int iterations) {
  GraphRun run;
  for (int i = 0; i < iterations; ++i) {
    run.metrics.push_back(device.metrics(static_cast<std::uint64_t>(i)));
    run.losses.push_back(run.metrics.back().loss);
  }
  read_tensors(device, graph, run);
  for (std::vector<float>& gradient : run.gradients)
    for (float& value : gradient) value /= run.metrics.back().loss_scale;
  return run;
}

GraphRun train(Device& device, const Graph& graph, const TestTensors& tensors, const TrainOptions& options,
               const DescribeOptions& describe_options) {
  DeviceLimits limits = device.limits();
  if (limits.kind == DeviceKind::cuda) limits.compute_capability = options.compute_capability;
  Program program = describe(graph, describe_options, limits);
  device.prepare(graph, options.rule, program);
  device.bind(program, plan_memory(program));
  write_tensors(device, graph, tensors);
  if (!options.other_batches) device.write_batch(0, tensors.images, tensors.labels);
  const LossScaling& scaling = options.rule.loss_scaling;
  const float loss_scale = scaling.kind == LossScaling::Kind::none ? 1 : scaling.initial;
  device.write_state({.learning_rate = options.learning_rate, .loss_scale = loss_scale});
  RandomBatches batches(graph);
  Runner runner(program, device, nullptr, batches);
  device.start_clock();
  for (int i = 0; i < options.iterations; ++i) {
    if (i < options.stamped_iterations)
      runner.run_stamped_iteration();
    else
      runner.run_iteration();
    if (i == 0 && options.capture) runner.capture();
  }
  device.synchronize();
  return read_results(device, graph, options.iterations);
}

}  // namespace

TrainOptions half_steps(Precision precision, int iterations) {
  TrainOptions options{.precision = precision, .rule = kTestedRule, .iterations = iterations};
  if (precision == Precision::fp16)
    options.rule.loss_scaling = {.kind = LossScaling::Kind::fixed, .initial = 256};
  return options;
}

std::vector<PlainLayer> without(const Graph& graph, const std::vector<FusedPattern>& patterns) {
  std::vector<PlainLayer> plain;
  for (std::size_t op = 0; op < graph.ops.size(); ++op)
    for (const FusedPattern pattern : patterns) plain.push_back({op, pattern, "to compare"});
  return plain;
}

GraphRun train_on_gpu(const Graph& graph, const TestTensors& tensors, const TrainOptions& options) {
  GraphRun run;
  {
    const std::unique_ptr<Device> device = cuda::make_device({.choice = DeviceChoice::cuda});
    run = train(*device, graph, tensors, options,
                {.precision = options.precision,
                 .load_batch_every_step = options.other_batches,
                 .normalization = kNormalization,
                 .fuse = options.fuse,
                 .deterministic = options.deterministic,
                 .scale_loss = options.rule.loss_scaling.kind != LossScaling::Kind::none,
                 .fp32_head = options.fp32_head,
                 .plain = options.plain});
  }
  EXPECT_EQ(gpu::emulated::leaks(), "");
  return run;
}

GraphRun train_on_cpu(const Graph& graph, const TestTensors& tensors, const TrainOptions& options) {
  const std::unique_ptr<Device> device = cpu::make_device({.choice = DeviceChoice::cpu});
  TrainOptions unscaled = options;
  unscaled.rule.loss_scaling = {};
  unscaled.capture = false;
  return train(*device, graph, tensors, unscaled,
               {.load_batch_every_step = options.other_batches,
                .normalization = kNormalization,
                .winograd = Winograd::never});
}

double relative_error(const std::vector<float>& values, const std::vector<float>& truth) {
  double error = 0, length = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const double difference = static_cast<double>(values[i]) - truth[i];
    error += difference * difference;
    length += static_cast<double>(truth[i]) * truth[i];
  }
  return error == 0 ? 0 : std::sqrt(error / length);
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double product = 0, of_a = 0, of_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += static_cast<double>(a[i]) * b[i];
    of_a += static_cast<double>(a[i]) * a[i];
    of_b += static_cast<double>(b[i]) * b[i];
  }
  return product / std::sqrt(of_a * of_b);
}

std::vector<Difference> differences(const Graph& graph, const GraphRun& run, const GraphRun& truth) {
  std::vector<Difference> found;
  for (std::size_t i = 0; i < truth.losses.size(); ++i)
    found.push_back({"loss of iteration " + std::to_string(i),
                     std::abs(run.losses.at(i) - truth.losses[i]) / truth.losses[i]});
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    const std::string& name = graph.parameters[p].name;
    found.push_back({"gradient of " + name, relative_error(run.gradients[p], truth.gradients[p])});
    found.push_back({"updated " + name, relative_error(run.parameters[p], truth.parameters[p])});
  }
  for (std::size_t s = 0; s < graph.statistics.size(); ++s)
    found.push_back({graph.statistics[s].name, relative_error(run.statistics[s], truth.statistics[s])});
  return found;
}

void expect_same_training(const Graph& graph, const GraphRun& run, const GraphRun& truth, double tolerance) {
  ASSERT_EQ(run.losses.size(), truth.losses.size());
  for (const Difference& one : differences(graph, run, truth)) EXPECT_LE(one.error, tolerance) << one.of;
}

void expect_identical(const GraphRun& run, const GraphRun& other) {
  EXPECT_EQ(run.losses, other.losses);
  EXPECT_EQ(run.gradients, other.gradients);
  EXPECT_EQ(run.parameters, other.parameters);
  EXPECT_EQ(run.statistics, other.statistics);
}

}  // namespace plumb
