#include "bench/inquiries/inquiries.h"

#include "bench/documents/completions.h"
#include "bench/inquiries/dry_run.h"
#include "bench/inquiries/head_table.h"
#include "bench/inquiries/target_list.h"
#include "bench/output/version.h"
#include "bench/run/session.h"
#include "comm/launched_as.h"

namespace plumb {
namespace {

DeviceLimits limits_of(const BenchOptions& options) {
  if (!options.target.empty()) return *find_target(options.target);
  return make_device({.choice = options.device, .threads = options.threads})->limits();
}

// The world that --nodes and --devices-per-node ask about; without them the ranks that the launcher started.
int world_size(const BenchOptions& options) {
  if (options.nodes == 0 && options.devices_per_node == 0) return launched_as().size;
  return std::max(options.nodes, 1) * std::max(options.devices_per_node, 1);
}

std::string answer_dry_run(const BenchOptions& asked) {
  const DeviceLimits limits = limits_of(asked);
  const int ranks = world_size(asked);
  const BenchOptions options = resolve(asked, limits, ranks);
  const bool same_batch = options.data == "synthetic" || !options.batch.empty();
  const auto program_for = [&](const Graph& graph) {
    return with_collectives(describe(graph, describe_options(options, same_batch), limits), options, ranks);
  };
  const std::int64_t fits = largest_batch(
      [&](std::int64_t batch) {
        BenchOptions other = options;
        other.batch_per_device = batch;
        const Program program = program_for(make_graph(other, 0, ranks));
        return needed_bytes(program, plan_memory(program), limits);
      },
      limits.memory_bytes);
  const Graph graph = make_graph(options, 0, ranks);
  const Program program = program_for(graph);
  const DryRun run = dry_run(graph, program, plan_memory(program), limits,
                             {.precision = options.precision, .world_size = ranks, .largest_batch = fits});
  std::vector<HeadPlan> heads;
  if (options.workload == Workload::arcface) heads = plan_heads(options, limits, ranks);
  if (options.json) {
    nlohmann::ordered_json json = to_json(run);
    if (!heads.empty()) json["heads"] = to_json(heads);
    return json.dump(2) + "\n";
  }
  const std::string fused =
      options.verbose ? fusion_text(graph, describe_options(options, same_batch), limits) : "";
  return to_text(run) + (heads.empty() ? "" : to_text(heads)) + (fused.empty() ? "" : "\n" + fused);
}

}  // namespace

std::optional<std::string> answer_without_running(const std::string& program, const BenchOptions& options) {
  if (options.help) return options_help(options.workload);
  if (options.version) return version_text(program);
  if (!options.completions.empty()) {
    BenchOptions defaults = default_options(options.workload);
    return bash_completions(bench_option_table(defaults));
  }
  if (options.list_targets)
    return options.json ? targets_json(targets()).dump(2) + "\n" : targets_text(targets());
  if (options.dry_run) return answer_dry_run(options);
  return std::nullopt;
}

}  // namespace plumb
