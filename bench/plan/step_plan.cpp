#include "bench/plan/step_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/text_table.h"
#include "bench/data/augment.h"
#include "comm/gradient_reduction.h"
#include "models/margin_head.h"
#include "models/model_builder.h"

namespace plumb {
namespace {

Graph make_graph(const BenchOptions& options, int rank, int world_size) {
  const FaceOptions& face = options.face;
  return options.model->make({.batch = *options.batch_per_device,
                              .image_size = options.image_size,
                              .label_smoothing = options.label_smoothing,
                              .embedding = face.embedding.value_or(0),
                              .prelu_per_layer = face.prelu_per_layer,
                              .dropout = face.dropout.value_or(0),
                              .classes = face.classes,
                              .margins = face.margins.value_or(Margins{}),
                              .scale = face.scale,
                              .gradient = face.margin_gradient,
                              .head = face.head,
                              .sample_rate = face.sample_rate.value_or(1),
                              .rank = rank,
                              .world_size = world_size,
                              .decay = options.decay,
                              .seed = options.seed});
}

DescribeOptions describe_options(const BenchOptions& options, const Tuning& tuning) {
  const bool same_batch_every_step = options.data == "synthetic" || !options.batch.empty();
  return {.precision = options.precision,
          .load_batch_every_step = !same_batch_every_step,
          .normalization = normalisation_of(preprocessing_of(*options.model)),
          .fuse = options.fuse,
          .deterministic = options.deterministic,
          .scale_loss = options.loss_scaling && options.loss_scaling->kind != LossScaling::Kind::none,
          .fp32_head = options.model->margin_head && options.face.head_dtype != HeadDtype::same,
          .tf32_head = options.face.head_dtype == HeadDtype::tf32,
          .plain = tuning.plain,
          .winograd = options.winograd};
}

Program with_collectives(Program program, const BenchOptions& options, int world_size) {
  if (!has_collectives(options, world_size)) return program;
  GradientReductionOptions reduction{
      .dtype = options.reduce_dtype, .world_size = world_size, .overlap = options.overlap};
  reduction.buckets.bucket_bytes = static_cast<std::size_t>(std::llround(options.bucket_mb * (1 << 20)));
  return add_gradient_reduction(std::move(program), reduction);
}

}  // namespace

StepPlan make_step_plan(const BenchOptions& options, const DeviceLimits& limits, int rank, int world_size,
                        const Tuning& tuning, Device* device) {
  StepPlan plan{.graph = make_graph(options, rank, world_size),
                .described_with = describe_options(options, tuning),
                .rule = {.optimizer = options.optimizer,
                         .momentum = options.momentum,
                         .weight_decay = options.weight_decay,
                         .loss_scaling = options.loss_scaling.value_or(LossScaling{})}};
  plan.program = describe(plan.graph, plan.described_with, limits);
  if (device) {
    apply_tuning(tuning, plan.program);
    device->prepare(plan.graph, plan.rule, plan.program);
  }
  plan.program = with_collectives(std::move(plan.program), options, world_size);
  plan.memory = plan_memory(plan.program);
  const std::size_t copies = limits.in_host_memory ? memory_bytes(plan.program, plan.memory).parameters : 0;
  plan.needed_bytes = static_cast<double>(plan.memory.arena_bytes + copies);
  return plan;
}

std::string engines_text(const StepPlan& plan) {
  std::map<std::pair<std::string, std::string>, int> ops;
  for (const Instruction& instruction : plan.program.instructions)
    ++ops[{std::string(instruction.kind()), instruction.engine}];
  std::vector<TextRow> rows{{"kind", "ops", "engine"}};
  for (const auto& [what, count] : ops) rows.push_back({what.first, std::to_string(count), what.second});
  std::string text = padded_table(rows, "lrl");
  for (const PlainLayer& layer : plan.described_with.plain)
    text += fmt::format("{} without {}: {}\n", name_of(plan.graph.ops[layer.op]), name_of(layer.pattern),
                        layer.reason);
  return text;
}

std::int64_t largest_planned_batch(const BenchOptions& options, const DeviceLimits& limits, int rank,
                                   int world_size, double memory_bytes, const Tuning& tuning) {
  BenchOptions other = options;
  const auto fits = [&](std::int64_t batch) {
    other.batch_per_device = batch;
    return make_step_plan(other, limits, rank, world_size, tuning).needed_bytes <= memory_bytes;
  };
  std::int64_t largest = 0, too_large = 1;
  while (too_large <= kMaxBatch && fits(too_large)) {
    largest = too_large;
    too_large = std::min(2 * too_large, kMaxBatch + 1);
  }
  while (too_large - largest > 1) {
    const std::int64_t middle = std::midpoint(largest, too_large);
    (fits(middle) ? largest : too_large) = middle;
  }
  return largest;
}

std::vector<std::pair<const char*, std::size_t>> memory_parts(const StepPlan& plan) {
  const MemoryBytes memory = memory_bytes(plan.program, plan.memory);
  return {{"parameters", memory.parameters}, {"gradients", memory.gradients},
          {"optimizer", memory.optimizer},   {"activations", memory.activations},
          {"workspace", memory.workspace},   {"planned", memory.planned}};
}

std::string shard_text(const Graph& graph) {
  const MarginLoss& loss = std::get<MarginLoss>(graph.ops.back());
  const std::int64_t own = graph.parameters[loss.weight].dims.front();
  return fmt::format("{} of {} class centers, {} in a step", own, loss.classes,
                     margin_rows(loss, own, graph.batch()));
}

}  // namespace plumb
