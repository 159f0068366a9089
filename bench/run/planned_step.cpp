#include <algorithm>
#include <optional>

#include "base/console/progress.h"
#include "base/machine/machine.h"
#include "base/steady_clock.h"
#include "base/text.h"
#include "bench/data/image_loader.h"
#include "bench/run/stages.h"

namespace plumb {
namespace {

std::int64_t classes_of(const Graph& graph) {
  if (const auto* loss = std::get_if<MarginLoss>(&graph.ops.back())) return loss->classes;
  return graph.values[std::get<SoftmaxLoss>(graph.ops.back()).in].shape.c;
}

BatchSourceOptions source_options(const DescribedStep& step) {
  const BenchOptions& options = step.options;
  BatchSourceOptions source{.data = options.data,
                            .batch_file = options.batch,
                            .batch_per_device = *options.batch_per_device,
                            .image_size = options.image_size,
                            .classes = classes_of(step.plan.graph),
                            .preprocessing = preprocessing_of(*options.model),
                            .seed = options.seed,
                            .rank = step.job.rank(),
                            .world_size = step.job.size(),
                            .workers = options.data_workers};
  if (HostStaging* staging = step.device->host_staging())
    source.allocate = [staging](std::size_t bytes) { return staging->allocate_pinned(bytes); };
  return source;
}

// Throws Error(out_of_memory) if the step needs more bytes than this rank may use.
void require_memory(const DescribedStep& step, const Tuning& tuning, double needed_bytes) {
  const double free = step.memory_bytes();
  if (needed_bytes <= free) return;
  const Job& job = step.job;
  const DeviceLimits& limits = step.device->limits();
  const double workspaces =
      needed_bytes - make_step_plan(step.options, limits, job.rank(), job.size(), tuning).needed_bytes;
  const std::int64_t fits =
      largest_planned_batch(step.options, limits, job.rank(), job.size(), free - workspaces, tuning);
  throw Error(ExitCode::out_of_memory, "rank {} on {} needs {} bytes for --bs {} and has {} free; {}{}",
              job.rank(), job.host(), static_cast<std::int64_t>(needed_bytes), *step.options.batch_per_device,
              static_cast<std::int64_t>(free),
              fits > 0 ? fmt::format("according to the plan --bs {} fits", fits) : "not even --bs 1 fits",
              step.options.model->margin_head ? "; fewer --classes need less" : "");
}

// A GPU's plan does not cover the host's memory, which may be small, as in a container.
void require_host_memory(const DescribedStep& step, const BatchSourceOptions& source) {
  const Job& job = step.job;
  const auto needed = static_cast<double>(ImageLoader::batches_bytes(source));
  const double free = available_bytes() / job.local_size();
  if (needed > free)
    throw Error(ExitCode::out_of_memory,
                "rank {} on {} needs {} bytes of host memory for images with {}, and has {} free; pass a "
                "smaller --bs or fewer --data-workers",
                job.rank(), job.host(), static_cast<std::int64_t>(needed), counted(source.workers, "worker"),
                static_cast<std::int64_t>(free));
}

bool has_shards(const Graph& graph) {
  return std::ranges::any_of(graph.parameters, [](const Parameter& one) { return one.shard.has_value(); });
}

}  // namespace

DescribedStep::DescribedStep(ResolvedRun&& run) : ResolvedRun(std::move(run)) {
  job.together([&] {
    plan = make_step_plan(options, device->limits(), job.rank(), job.size());
    require_memory(*this, {}, plan.needed_bytes);
    if (!options.weights.empty() && (job.rank() == 0 || has_shards(plan.graph)))
      given = tensors_for(plan.graph, read_safetensors(options.weights, "--weights"), options.weights);
    if (options.data != "synthetic" && device->host_staging())
      require_host_memory(*this, source_options(*this));
    source = make_batch_source(source_options(*this));
  });
  job.require_same("--data", source->fingerprint());
}

PlannedStep::PlannedStep(DescribedStep&& step) : DescribedStep(std::move(step)) {
  tune();
  job.together([&] {
    plan = make_step_plan(options, device->limits(), job.rank(), job.size(), tuning, device.get());
    const std::size_t images = device->host_staging() ? 0 : source->host_bytes();
    require_memory(*this, tuning, plan.needed_bytes + static_cast<double>(images));
  });
  job.require_same("Program", fmt::format("hash={}\n", reduction_hash(plan.program)));
}

// Rank 0 finds the engines and fused patterns, every rank uses them. Rank 0 shows progress on stderr unless
// --quiet: a bar on a terminal, elsewhere a line every ten seconds.
void PlannedStep::tune() {
  const bool first = job.rank() == 0;
  job.enter_phase(RunPhase::tuning);
  job.together([&] {
    if (!first) return;
    std::optional<ProgressBar> bar;
    const double start = steady_seconds();
    const auto progress = [&](std::size_t done, std::size_t known) {
      if (!bar)
        bar.emplace(options.quiet ? nullptr : stderr, terminal_of(stderr), static_cast<std::int64_t>(known),
                    1, "engines chosen/s");
      bar->update(static_cast<std::int64_t>(done), steady_seconds() - start);
    };
    tuning = device->tune(plan.graph, plan.rule, plan.described_with,
                          {.time_engines = options.autotune && !options.deterministic, .progress = progress});
  });
  const std::string choices = job.all_gather(first ? choices_to_json(tuning).dump() : std::string()).front();
  if (!first) tuning = choices_from_json(nlohmann::json::parse(choices));
  job.enter_phase(RunPhase::preparing);
}

}  // namespace plumb
