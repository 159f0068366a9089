#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/console/print.h"
#include "base/ranges.h"
#include "base/text_table.h"
#include "base/units.h"
#include "bench/plan/step_plan.h"
#include "bench/run/tasks.h"
#include "comm/gradient_reduction.h"
#include "comm/launcher.h"
#include "kernels/device.h"
#include "kernels/program/roofline.h"
#include "results/record/fields.h"

namespace plumb {
namespace {

constexpr std::size_t kLongestShown = 10;
constexpr std::size_t kOpNameColumns = 48;
constexpr std::size_t kColumns = 100, kSourceIndent = 4;  // of the list of targets
constexpr std::array kPrecisions{Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16};

struct PlannedOp {
  std::string name;
  Phase phase = Phase::input;
  Lane lane = Lane::compute;
  Work work;
  double roofline_seconds = 0;

  static void fields(auto& self, auto&& each) {
    each("name", self.name), each("phase", std::string(name_of(self.phase)));
    each("lane", std::string(name_of(self.lane))), each("macs", static_cast<std::int64_t>(self.work.macs));
    each("bytes", static_cast<std::int64_t>(self.work.bytes), Field{"read and written"});
    each("roofline_seconds", self.roofline_seconds, Field{"0 on lanes that run next to compute"});
  }
};

struct DryRun {
  std::unique_ptr<Device> device;  // this machine's; null with --target. First: the plan may refer to it
  BenchOptions options;            // resolved
  DeviceLimits limits;
  int world_size = 1;
  StepPlan plan;
  std::vector<PlannedOp> ops;
  Roofline least;                  // of the step
  std::int64_t largest_batch = 0;  // per device; 0: not even one image fits

  bool fits() const { return plan.needed_bytes <= limits.memory_bytes; }
  std::map<std::string, std::optional<std::int64_t>> memory() const {
    std::map<std::string, std::optional<std::int64_t>> parts{{"peak", std::nullopt}};
    for (const auto& [name, bytes] : memory_parts(plan)) parts[name] = static_cast<std::int64_t>(bytes);
    return parts;
  }

  static void fields(auto& self, auto&& each) {
    const Graph& graph = self.plan.graph;
    const std::int64_t of_head = head_parameter_count(graph);
    const auto if_head = [&](std::int64_t count) {
      return of_head > 0 ? std::optional(count) : std::nullopt;
    };
    each("model", graph.model), each("precision", std::string(name_of(self.options.precision)));
    each("batch_per_device", self.options.batch_per_device.value_or(0));
    each("world_size", self.world_size);
    each("target", self.limits.name, Field{"the device that the step is planned for"});
    each("parameters", backbone_parameter_count(graph), Field{"without class centers"});
    each("macs_per_image", macs_per_image(graph), Field{"of the forward pass"});
    each("memory_bytes", self.memory(), Field{"by part, of one device; peak is null, because nothing ran"});
    each("device_memory_bytes", static_cast<std::int64_t>(self.limits.memory_bytes));
    each("fits", self.fits());
    each("largest_batch", self.largest_batch, Field{"per device; 0: not even one image fits"});
    each("roofline_seconds", self.least.seconds, Field{"of a step"});
    each("traffic_bytes", static_cast<std::int64_t>(sent_bytes_per_rank(self.plan.program, self.world_size)),
         Field{"sent per step and rank"});
    each("ops", self.ops);
    each("head_parameters", if_head(of_head), Field{"class centers of all ranks"});
    each("head_macs_per_image", if_head(head_macs_per_image(graph)));
    each("program", self.options.verbose ? std::optional(program_json(self.plan)) : std::nullopt,
         Field{"with --verbose: as in program.json"});
  }
};

std::optional<double> peak_of(const DeviceLimits& limits, Precision precision) {
  const auto peak = limits.flops_per_second.find(precision);
  return peak == limits.flops_per_second.end() ? std::nullopt : std::optional(peak->second);
}

// A device that steps can be planned for, with the sustained figures that rooflines use.
struct Target {
  DeviceLimits limits;

  static void fields(auto& self, auto&& each) {
    const DeviceLimits& limits = self.limits;
    std::map<std::string, std::optional<double>> peaks;
    for (const Precision precision : kPrecisions)
      peaks[std::string(name_of(precision))] = peak_of(limits, precision);
    each("name", limits.name), each("kind", std::string(name_of(limits.kind)), Field{"cpu or cuda"});
    each("memory_bytes", static_cast<std::int64_t>(limits.memory_bytes), Field{"usable by one process"});
    each("bytes_per_second", limits.bytes_per_second, Field{"of its memory"});
    each("flops_per_second", peaks, Field{"by precision; null where the device lacks it"});
    each("compute_capability", limits.compute_capability, Field{"90 for sm_90; 0 of a CPU"});
    each("source", limits.source, Field{"of the figures"});
  }
};

// The world that --nodes and --devices-per-node ask about; without them the ranks that the launcher started.
int asked_world(const BenchOptions& options) {
  if (options.nodes == 0 && options.devices_per_node == 0) return launched_as().size;
  return std::max(options.nodes, 1) * std::max(options.devices_per_node, 1);
}

// The step as described; one that fits this machine's CPU as prepared, with its layouts and workspaces.
StepPlan planned_step(const DryRun& run) {
  StepPlan plan = make_step_plan(run.options, run.limits, 0, run.world_size);
  if (!run.device || run.limits.kind != DeviceKind::cpu || plan.needed_bytes > run.limits.memory_bytes)
    return plan;
  return make_step_plan(run.options, run.limits, 0, run.world_size, {}, run.device.get());
}

DryRun dry_run(const BenchOptions& asked) {
  std::unique_ptr<Device> device;
  if (asked.target.empty()) device = make_device({.choice = asked.device, .threads = asked.threads});
  const DeviceLimits limits = device ? device->limits() : *find_target(asked.target);
  DryRun run{.device = std::move(device), .options = {}, .limits = limits, .world_size = asked_world(asked)};
  run.options = resolve(asked, run.limits, run.world_size);
  run.plan = planned_step(run);
  const Precision precision = run.options.precision;
  const Program& program = run.plan.program;
  run.least = roofline(program, run.limits, precision);
  for (const Instruction& one : program.instructions) {
    double seconds = 0;
    if (one.lane == Lane::compute)
      seconds = roofline_seconds(one.work, run.limits, precision_of(program, one, precision));
    run.ops.push_back({one.name, one.phase, one.lane, one.work, seconds});
  }
  run.largest_batch =
      largest_planned_batch(run.options, run.limits, 0, run.world_size, run.limits.memory_bytes);
  return run;
}

// "25,557,032"
std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = std::ssize(text) - 3; at > 0; at -= 3) text.insert(static_cast<std::size_t>(at), 1, ',');
  return text;
}

std::string totals_text(const DryRun& run) {
  const Graph& graph = run.plan.graph;
  std::string text = fmt::format("{}, {}, batch {} per device, world size {}\n", graph.model,
                                 name_of(run.options.precision), grouped(graph.batch()), run.world_size);
  text += fmt::format("on {}\n\n", shortened(run.limits.name, 90));
  text += fmt::format("{:<20}{:>16}\n", "parameters", grouped(backbone_parameter_count(graph)));
  text += fmt::format("{:<20}{:>16}\n", "MACs per image", grouped(macs_per_image(graph)));
  if (const std::int64_t parameters = head_parameter_count(graph); parameters > 0) {
    text += fmt::format("{:<20}{:>16} parameters in all, {} MACs per image\n", "class centers",
                        grouped(parameters), grouped(head_macs_per_image(graph)));
    text += fmt::format("{:<20}{}\n", "  on rank 0", shard_text(graph));
  }
  text += fmt::format("{:<20}{:>16.3f} ms, {:.1f} images/s per device, {:.0f} % of it bound by bandwidth\n",
                      "roofline step", run.least.seconds * kMilliseconds,
                      run.least.seconds > 0 ? graph.batch() / run.least.seconds : 0,
                      percent(run.least.bytes_seconds, run.least.seconds));
  text += fmt::format("{:<20}{:>16.3f} GB per step and rank\n", "sent to others",
                      sent_bytes_per_rank(run.plan.program, run.world_size) / kGiga);
  text += fmt::format("{:<20}{:>16} {:.2f} GiB planned of {:.2f} GiB\n", "fits", run.fits() ? "yes:" : "no:",
                      static_cast<double>(memory_bytes(run.plan.program, run.plan.memory).planned) / kGiB,
                      run.limits.memory_bytes / kGiB);
  text += fmt::format("{:<20}{:>16} per device\n", "largest batch", grouped(run.largest_batch));
  return text;
}

std::string memory_text(const DryRun& run) {
  std::string text = fmt::format("\n{:<20}{:>16}\n", "memory", "GiB");
  for (const auto& [name, bytes] : memory_parts(run.plan))
    text += fmt::format("  {:<18}{:>16.3f}\n", name, static_cast<double>(bytes) / kGiB);
  return text;
}

std::string phases_text(const DryRun& run) {
  std::string text = fmt::format("\n{:<20}{:>8}{:>12}{:>12}{:>14}{:>8}\n", "phase", "count", "GMAC", "GB",
                                 "roofline ms", "share");
  for (const Phase phase : {Phase::input, Phase::forward, Phase::backward, Phase::reduce, Phase::update}) {
    std::size_t count = 0;
    double macs = 0, bytes = 0, seconds = 0;
    for (const PlannedOp& op : run.ops) {
      if (op.phase != phase) continue;
      ++count;
      macs += op.work.macs;
      bytes += op.work.bytes;
      seconds += op.roofline_seconds;
    }
    if (count == 0) continue;
    text += fmt::format("  {:<18}{:>8}{:>12.2f}{:>12.3f}{:>14.3f}{:>6.0f} %\n", name_of(phase), count,
                        macs / kGiga, bytes / kGiga, seconds * kMilliseconds,
                        percent(seconds, run.least.seconds));
  }
  return text;
}

std::string longest_text(const DryRun& run) {
  std::vector<PlannedOp> longest = run.ops;
  std::ranges::stable_sort(longest, std::greater{}, &PlannedOp::roofline_seconds);
  longest.resize(std::min(longest.size(), kLongestShown));
  const std::string title = fmt::format("longest {} of {} ops", longest.size(), run.ops.size());
  std::string text =
      fmt::format("\n{:<50}{:>10}{:>10}{:>14}{:>8}\n", title, "GMAC", "GB", "roofline ms", "share");
  for (const PlannedOp& op : longest)
    text += fmt::format("  {:<48}{:>10.2f}{:>10.3f}{:>14.3f}{:>6.0f} %\n", shortened(op.name, kOpNameColumns),
                        op.work.macs / kGiga, op.work.bytes / kGiga, op.roofline_seconds * kMilliseconds,
                        percent(op.roofline_seconds, run.least.seconds));
  return text + "(--json lists them all)\n";
}

constexpr const char *kDryRunSchema = "plumbline.dry_run/1", *kTargetsSchema = "plumbline.targets/1";

}  // namespace

std::string answer_dry_run(const BenchOptions& asked) {
  const DryRun run = dry_run(asked);
  if (asked.json) return json_text(document_json(kDryRunSchema, run));
  const std::string engines = asked.verbose ? engines_text(run.plan) : "";
  return totals_text(run) + memory_text(run) + phases_text(run) + longest_text(run) +
         (engines.empty() ? "" : "\n" + engines);
}

std::string answer_targets(bool json) {
  if (json) return json_text(fields::written(mapped(targets(), [](const auto& one) { return Target{one}; })));
  std::string text = fmt::format("{:<13}{:<6}{:>11}{:>10}", "target", "kind", "memory GiB", "GB/s");
  for (const Precision precision : kPrecisions) text += fmt::format("{:>9}", name_of(precision));
  text += "  sustained TFLOP/s\n";
  for (const DeviceLimits& target : targets()) {
    text += fmt::format("{:<13}{:<6}{:>11.1f}{:>10.0f}", target.name, name_of(target.kind),
                        target.memory_bytes / kGiB, target.bytes_per_second / 1e9);
    for (const Precision precision : kPrecisions) {
      const std::optional<double> peak = peak_of(target, precision);
      text += fmt::format("{:>9}", peak ? fmt::format("{:.1f}", *peak / 1e12) : "-");
    }
    text += '\n';
    for (const std::string& line : wrapped_lines(target.source, kColumns - kSourceIndent))
      text += std::string(kSourceIndent, ' ') + line + '\n';
  }
  return text;
}

Json dry_run_schema() {
  return json_schema<DryRun>(kDryRunSchema, "A training step as planned: --dry-run --json.");
}

Json targets_schema() {
  return json_schema_of<std::vector<Target>>(kTargetsSchema, "Devices of --target: --list-targets --json.");
}

}  // namespace plumb
