#include "bench/plan/head_table.h"

#include <spdlog/fmt/fmt.h>

#include <array>

#include "base/units.h"
#include "bench/plan/step_plan.h"
#include "comm/gradient_reduction.h"
#include "models/arcface.h"
#include "models/margin_head.h"

namespace plumb {
namespace {

constexpr std::array kTargets = {"v100-16gb", "v100-32gb", "h200"};

constexpr std::array<std::pair<const char*, Head>, 3> kHeads{
    {{"dp", Head::replicated}, {"mp", Head::sharded}, {"pfc", Head::sampled}}};

BenchOptions with_head(BenchOptions options, Head head) {
  options.face.head = head;
  if (head != Head::sampled) options.face.sample_rate.reset();
  options.face = resolve_face(options.face, *options.model);
  return options;
}

std::int64_t rows_of_step(const Graph& graph) {
  const MarginLoss& loss = std::get<MarginLoss>(graph.ops.back());
  return margin_rows(loss, graph.parameters[loss.weight].dims.front(), graph.batch());
}

}  // namespace

// Memory is a line in the number of classes, apart from rounding: two plans estimate where it meets the
// limit, and a few more find the exact count.
std::optional<std::int64_t> largest_classes(const BenchOptions& options, const DeviceLimits& limits,
                                            int world_size, const std::vector<PlainLayer>& plain) {
  if (!limits.flops_per_second.contains(options.precision)) return std::nullopt;
  const auto bytes = [&](std::int64_t classes) {
    BenchOptions other = options;
    other.face.classes = classes;
    return make_step_plan(other, limits, 0, world_size, {.plain = plain, .prepare = {}}).needed_bytes;
  };
  return largest_on_a_line(bytes, limits.memory_bytes, {world_size, kMaxClasses});
}

std::vector<HeadPlan> plan_heads(const BenchOptions& options, const DeviceLimits& limits, int world_size) {
  std::vector<HeadPlan> plans;
  for (const auto& [name, head] : kHeads) {
    if (head != Head::replicated && options.face.classes < world_size) continue;
    const BenchOptions one = with_head(options, head);
    const StepPlan step = make_step_plan(one, limits, 0, world_size);
    HeadPlan plan{.head = name,
                  .planned_bytes = static_cast<double>(step.memory.arena_bytes),
                  .traffic_bytes = sent_bytes_per_rank(step.program, world_size),
                  .rows = rows_of_step(step.graph)};
    for (const char* target : kTargets)
      plan.largest_classes[target] = largest_classes(one, *find_target(target), world_size);
    plans.push_back(std::move(plan));
  }
  return plans;
}

std::string shard_text(const Graph& graph) {
  const MarginLoss& loss = std::get<MarginLoss>(graph.ops.back());
  return fmt::format("{} of {} class centers, {} in a step", graph.parameters[loss.weight].dims.front(),
                     loss.classes, rows_of_step(graph));
}

std::string to_text(const std::vector<HeadPlan>& heads) {
  std::string text = fmt::format("\n{:<14}{:>12}{:>16}{:>14}", "class centers", "GiB planned",
                                 "GB sent / step", "rows / step");
  for (const char* target : kTargets) text += fmt::format("{:>14}", target);
  text += "\n";
  for (const HeadPlan& plan : heads) {
    text += fmt::format("  --head {:<5}{:>12.3f}{:>16.3f}{:>14}", plan.head, plan.planned_bytes / kGiB,
                        plan.traffic_bytes / kGiga, plan.rows);
    for (const char* target : kTargets) {
      const auto& classes = plan.largest_classes.at(target);
      text += fmt::format("{:>14}", classes ? std::to_string(*classes) : "n/a");
    }
    text += "\n";
  }
  return text + "(per rank; the last columns: most classes that fit such a GPU)\n";
}

}  // namespace plumb
