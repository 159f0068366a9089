#include "bench/plan/step_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "models/model_builder.h"
#include "tests/bench/parsed_options.h"

namespace plumb {
namespace {

Graph make_tiny(const ModelOptions& options) {
  ModelBuilder net("tiny", options.decay);
  ValueId value = net.images(options.batch, options.image_size);
  value = net.conv("conv", value, {.channels = 8, .kernel = 3, .stride = 2, .padding = 1});
  value = net.batch_norm("bn", value, {.activation = Activation::relu});
  value = net.global_average_pool("pool", value);
  value = net.dense("fc", value, 10, {.weight = he_fan_out(10), .bias = {}});
  net.softmax_loss("loss", value, options.label_smoothing);
  return net.take();
}

constexpr Model tiny_model(std::string_view program) {
  return {.name = "tiny",
          .title = "a tiny net",
          .task = "a tiny net",
          .program = program,
          .make = make_tiny,
          .image_size = 48,
          .recipe = {.iterations = 7, .warmup = 2, .learning_rate = 0.5}};
}

const DeviceLimits& h200() {
  static const DeviceLimits limits = *find_target("h200");
  return limits;
}

BenchOptions resolved(const std::vector<std::string>& arguments,
                      const std::string& program = "bench_resnet50",
                      std::span<const Model> catalogue = model_catalogue()) {
  return resolve(parsed_options(arguments, program, catalogue), h200(), 1);
}

bool has_step(const Program& program, const std::string& part) {
  return std::ranges::any_of(program.instructions, [&](const Instruction& instruction) {
    return instruction.name.find(part) != std::string::npos;
  });
}

TEST(StepPlan, OfAModelOfAnotherCatalogue) {
  const std::vector<Model> catalogue{tiny_model("bench_tiny")};
  const BenchOptions options = resolved({"--bs", "4", "--fp16"}, "bench_tiny", catalogue);
  EXPECT_EQ(options.iterations, 7);
  EXPECT_EQ(options.warmup, 2);
  EXPECT_EQ(options.learning_rate, 0.5);
  const StepPlan plan = make_step_plan(options, h200(), 0, 2);
  EXPECT_EQ(plan.graph.model, "tiny");
  EXPECT_EQ(plan.graph.values.front().shape, (Shape{4, 48, 48, 3}));
  EXPECT_TRUE(has_step(plan.program, "conv"));
  EXPECT_TRUE(has_step(plan.program, "bucket0.allreduce"));
  EXPECT_EQ(plan.memory.offsets.size(), plan.program.buffers.size());
  EXPECT_GT(largest_planned_batch(options, h200(), 0, 2, h200().memory_bytes), 4);
}

TEST(StepPlan, AProgramOfSeveralModelsHasAnOptionThatChooses) {
  const std::vector<Model> catalogue{*find_model("resnet50"), tiny_model("bench_resnet50")};
  const BenchOptions chosen =
      resolved({"--bs", "1", "--iters", "9", "--model", "tiny"}, "bench_resnet50", catalogue);
  EXPECT_EQ(make_step_plan(chosen, h200(), 0, 1).graph.model, "tiny");
  EXPECT_EQ(chosen.image_size, 48);
  EXPECT_EQ(chosen.iterations, 9);
  EXPECT_EQ(chosen.warmup, 2) << "the chosen model's";
  EXPECT_EQ(options_json(chosen).at("model"), "tiny");
  const BenchOptions first = resolved({"--bs", "1"}, "bench_resnet50", catalogue);
  EXPECT_EQ(make_step_plan(first, h200(), 0, 1).graph.model, "resnet50");
  EXPECT_THROW(resolved({"--model", "tiny"}), Error) << "the only one of its program";
}

TEST(StepPlan, CollectivesAndMemoryComeAfterTheDevice) {
  const std::unique_ptr<Device> device = make_device({.choice = DeviceChoice::cpu, .threads = 1});
  const BenchOptions options = resolve(parsed_options({"--device", "cpu", "--bs", "1", "--image-size", "32",
                                                       "--conv", "direct", "--comm", "mpi"}),
                                       device->limits(), 1);
  const StepPlan described = make_step_plan(options, device->limits(), 0, 1);
  const StepPlan prepared = make_step_plan(options, device->limits(), 0, 1, {}, device.get());
  EXPECT_TRUE(has_step(prepared.program, ".allreduce"));
  EXPECT_EQ(memory_bytes(described.program, described.memory).workspace, 0u);
  EXPECT_GT(memory_bytes(prepared.program, prepared.memory).workspace, 0u);
  EXPECT_GT(prepared.needed_bytes, described.needed_bytes);
}

TEST(StepPlan, PlainLayersAreExceptionsToFusion) {
  const BenchOptions options = resolved({"--bs", "2", "--fp16"});
  const StepPlan fused = make_step_plan(options, h200(), 0, 1);
  Tuning unfused;
  for (std::size_t op = 0; op < fused.graph.ops.size(); ++op)
    unfused.plain.push_back({.op = op, .pattern = FusedPattern::statistics});
  const StepPlan exceptions = make_step_plan(options, h200(), 0, 1, unfused);
  EXPECT_EQ(exceptions.described_with.plain.size(), unfused.plain.size());
  EXPECT_NE(exceptions.program.instructions.size(), fused.program.instructions.size());
  const auto largest = [&](const Tuning& tuning) {
    return largest_planned_batch(options, h200(), 0, 1, h200().memory_bytes, tuning);
  };
  EXPECT_LT(largest(unfused), largest({}));
}

TEST(StepPlan, LoadsBatchesUnlessTheyAreTheSame) {
  const auto loads = [](const std::vector<std::string>& arguments) {
    return make_step_plan(resolved(arguments), h200(), 0, 1).described_with.load_batch_every_step;
  };
  EXPECT_FALSE(loads({"--bs", "1"}));
  EXPECT_FALSE(loads({"--bs", "1", "--batch-file", "one.safetensors"}));
  EXPECT_TRUE(loads({"--bs", "1", "--data", "images"}));
}

TEST(StepPlan, ACpuKeepsCopiesOfParametersBesideTheArena) {
  const DeviceLimits cpu = *find_target("cpu");
  const BenchOptions options = resolved({"--bs", "1", "--image-size", "32"});
  const StepPlan plan = make_step_plan(options, cpu, 0, 1);
  const std::size_t parameters = memory_bytes(plan.program, plan.memory).parameters;
  EXPECT_EQ(plan.needed_bytes, static_cast<double>(plan.memory.arena_bytes + parameters));
  const StepPlan on_gpu = make_step_plan(options, h200(), 0, 1);
  EXPECT_EQ(on_gpu.needed_bytes, static_cast<double>(on_gpu.memory.arena_bytes));
}

}  // namespace
}  // namespace plumb
