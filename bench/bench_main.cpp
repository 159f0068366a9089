#include "bench/bench_main.h"

#include <algorithm>

#include "base/console/messages.h"
#include "base/console/print.h"
#include "base/standard_descriptors.h"
#include "base/units.h"
#include "bench/options/options.h"
#include "bench/output/program_json.h"
#include "bench/output/summary.h"
#include "bench/plan/dry_run.h"
#include "bench/plan/head_table.h"
#include "bench/plan/step_plan.h"
#include "bench/run/decode_rate.h"
#include "bench/run/environment.h"
#include "bench/run/find_max_batch.h"
#include "bench/run/run_program.h"
#include "bench/run/training.h"
#include "comm/launched_as.h"

namespace plumb {
namespace {

// The step as described; one that fits this machine's CPU as prepared, with its layouts and workspaces.
// `device`: null with --target.
StepPlan planned_step(const BenchOptions& options, const DeviceLimits& limits, Device* device, int ranks) {
  StepPlan plan = make_step_plan(options, limits, 0, ranks);
  if (!device || limits.kind != DeviceKind::cpu || plan.needed_bytes > limits.memory_bytes) return plan;
  return make_step_plan(options, limits, 0, ranks,
                        {.prepare = [device](const Graph& graph, Program& program) {
                          device->prepare(graph, UpdateRule{}, program);
                        }});
}

// The world that --nodes and --devices-per-node ask about; without them the ranks that the launcher started.
int world_size(const BenchOptions& options) {
  if (options.nodes == 0 && options.devices_per_node == 0) return launched_as().size;
  return std::max(options.nodes, 1) * std::max(options.devices_per_node, 1);
}

// --bandwidth and --latency.
Link asked_link(const BenchOptions& options) {
  constexpr double kBits = 8;
  return {.latency_seconds = options.dry_run.latency_us.value_or(0) / kMicrosecondsInSecond,
          .bytes_per_second = *options.dry_run.bandwidth_gbps * kGiga / kBits};
}

std::string answer_dry_run(const BenchOptions& asked) {
  std::unique_ptr<Device> device;  // this machine's
  if (asked.dry_run.target.empty()) device = make_device({.choice = asked.device, .threads = asked.threads});
  const DeviceLimits limits = device ? device->limits() : *find_target(asked.dry_run.target);
  const int ranks = world_size(asked);
  const BenchOptions options = resolve(asked, limits, ranks);
  const StepPlan plan = planned_step(options, limits, device.get(), ranks);
  DryRun run = dry_run(plan, limits, options.precision, ranks,
                       largest_planned_batch(options, limits, 0, ranks, limits.memory_bytes));
  if (options.dry_run.bandwidth_gbps)
    run.exchange =
        predict_exchange(plan, roofline_seconds(run), {options.nodes, std::max(options.devices_per_node, 1)},
                         asked_link(options));
  std::vector<HeadPlan> heads;
  if (options.model->margin_head) heads = plan_heads(options, limits, ranks);
  if (options.json) {
    nlohmann::ordered_json json = to_json(run);
    if (options.verbose) json["program"] = program_json(plan.program, plan.memory);
    if (!heads.empty()) json["heads"] = to_json(heads);
    return json_text(json);
  }
  const std::string engines = options.verbose ? engines_text(plan, limits) : "";
  return to_text(run) + (heads.empty() ? "" : to_text(heads)) + (engines.empty() ? "" : "\n" + engines);
}

}  // namespace

std::optional<std::string> answer_without_running(const std::string& program, const BenchOptions& options) {
  BenchOptions defaults = default_options(program, options.catalogue);
  if (auto answer = answer_to(options.questions, bench_option_table(defaults), options.json)) return answer;
  if (options.print_config) return json_text(options_json(options));
  if (options.list_targets)
    return options.json ? json_text(targets_json(targets())) : targets_text(targets());
  if (options.task == Task::dry_run) return answer_dry_run(options);
  return std::nullopt;
}

int run_bench(const std::string& program, int argc, char** argv, std::span<const Model> catalogue) {
  open_standard_descriptors();
  ensure_short_openmp_waits(argv);
  return run_program(program, [&] {
    const BenchOptions options = parse_options(argc, argv, program, catalogue);
    if (const auto answer = answer_without_running(program, options)) {
      if (launched_as().rank != 0) return;
      if (const std::string note = target_note(options.dry_run.target); !note.empty())
        Messages(stderr, terminal_of(stderr), options.quiet ? Loudness::quiet : Loudness::usual)
            .say(program + ": " + note);
      print_text(*answer);
      return;
    }
    run_job(program, {options.watch, options.probe, options.quiet}, &argc, &argv,
            [&](const Job& job, Watchdog* watchdog) {
              if (options.task == Task::find_max_batch)
                report_max_batch(job, options);
              else if (options.task == Task::decode_only)
                report_decode_rate(job, options);
              else
                run_training(job, options, {.watchdog = watchdog});
            });
  });
}

}  // namespace plumb
