#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "base/console/print.h"
#include "base/steady_clock.h"
#include "bench/plan/step_plan.h"
#include "bench/run/run_program.h"
#include "bench/run/runner.h"
#include "bench/run/stages.h"
#include "bench/run/tasks.h"
#include "models/model_builder.h"

namespace plumb {
namespace {

constexpr double kMiB = 1024.0 * 1024;
// Memory of a run on a CPU outside the plan: libraries, their code, MPI's buffers.
constexpr double kBesideThePlan = 128 * kMiB;

BenchOptions with_batch(BenchOptions options, std::int64_t batch) {
  options.batch_per_device = batch;
  options.autotune = false;  // a try would take minutes
  return options;
}

// The begin of a run: one iteration step by step and, if the run would capture, one replay.
void run_iterations(BoundStep& step) {
  Runner runner(step.plan.program, *step.device, step.communicator.get(), *step.source);
  step.device->start_clock();
  runner.run_iteration();
  step.device->synchronize();
  if (step.captures) {
    runner.capture();
    runner.run_iteration();
  }
  step.device->synchronize();
}

// Notes the memory that a batch took. Throws Error(out_of_memory), on all ranks, if it doesn't run.
void try_batch(const Job& job, const BenchOptions& options, double memory_bytes, MaxBatch& found) {
  BoundStep step{PlannedStep(DescribedStep(ResolvedRun(job, options)))};
  // Known to all ranks: they plan alike.
  if (static_cast<double>(step.plan.memory.arena_bytes) > memory_bytes)
    throw Error(ExitCode::out_of_memory, "the plan takes more than the memory that is given");
  job.enter_phase(RunPhase::warmup);
  try {
    run_iterations(step);
  } catch (const Error& error) {
    if (job.size() == 1) throw;
    throw FailureOfThisRank(error);  // the others are inside a collective
  }
  found.planned_bytes = step.plan.memory.arena_bytes;
  found.peak_bytes = step.device->peak_bytes();
  job.barrier();
}

// Throws Error(out_of_memory), on all ranks, if the plan of a CPU, with workspaces, has no room.
void plan_batch(const Job& job, const BenchOptions& options, double memory_bytes) {
  const PlannedStep step{DescribedStep(ResolvedRun(job, options))};
  job.together([&] {
    if (step.plan.needed_bytes + kBesideThePlan > memory_bytes)
      throw Error(ExitCode::out_of_memory, "the plan leaves the libraries no memory");
  });
}

// What the plan says before anything is tried.
MaxBatch plan_search(const ResolvedRun& run, double memory_bytes) {
  const Job& job = run.job;
  const BenchOptions& options = run.options;
  auto largest = static_cast<std::uint64_t>(
      largest_planned_batch(options, run.device->limits(), job.rank(), job.size(), memory_bytes));
  job.broadcast(largest);  // hosts may have different memory: all start at the same batch
  return {.model = std::string(options.model->name),
          .device = run.device->description(),
          .precision = options.precision,
          .world_size = job.size(),
          .image_size = options.image_size,
          .largest_planned = static_cast<std::int64_t>(largest)};
}

}  // namespace

MaxBatch find_max_batch(const Job& job, const BenchOptions& options, Messages& messages,
                        std::optional<double> given_bytes) {
  MaxBatch found;
  double memory = 0;
  bool in_host_memory = false;
  {
    const ResolvedRun run(job, with_batch(options, 1));
    in_host_memory = run.device->limits().in_host_memory;
    memory = given_bytes.value_or(run.memory_bytes());
    found = plan_search(run, memory);
  }
  messages.say(fmt::format("looking for the largest --bs: by the plan {} fits {:.1f} GiB",
                           found.largest_planned, memory / kMiB / 1024));
  const auto outcome = [&](std::int64_t batch, const std::function<void()>& set_up) -> BatchTry {
    try {
      set_up();
      return {.batch = batch, .ran = true};
    } catch (const FailureOfThisRank&) {
      throw;
    } catch (const Error& error) {
      const bool no_engine = error.code() == ExitCode::internal &&
                             std::string_view(error.what()).find(kNoEngine) != std::string_view::npos;
      if (error.code() != ExitCode::out_of_memory && !(no_engine && batch > 1))
        throw;  // one image is never too large
      messages.say(fmt::format("--bs {} doesn't fit{}{}", batch, no_engine ? ": " : "",
                               no_engine ? error.what() : ""));
      return {.batch = batch, .no_engine = no_engine};
    }
  };
  const auto run = [&](std::int64_t batch) {
    const double start = steady_seconds();
    BatchTry one = outcome(
        batch, [&] { try_batch(job, with_batch(options, batch), given_bytes.value_or(HUGE_VAL), found); });
    one.seconds = steady_seconds() - start;
    if (one.ran) messages.say(fmt::format("--bs {} runs (took {:.1f} s)", batch, one.seconds));
    return one;
  };
  std::int64_t estimate = found.largest_planned, highest = kMaxBatch;
  std::vector<BatchTry> refused;
  if (in_host_memory) {
    const auto plan = [&](std::int64_t batch) {
      const BatchTry one = outcome(batch, [&] { plan_batch(job, with_batch(options, batch), memory); });
      if (!one.ran) refused.push_back(one);
      return one;
    };
    estimate = highest = search_largest_batch(estimate, std::max<std::int64_t>(1, estimate), plan).batch;
  }
  if (highest > 0) found.search = search_largest_batch(estimate, highest, run);
  found.search.tries.insert(found.search.tries.begin(), refused.begin(), refused.end());
  return found;
}

void report_max_batch(const Job& job, const BenchOptions& options) {
  Messages messages = messages_of(job, options);
  const MaxBatch found = find_max_batch(job, options, messages);
  job.together([&] {
    if (job.rank() == 0)
      print_text(options.json ? document_json(kMaxBatchSchema, found).dump(2) + "\n" : to_text(found));
  });
}

std::string to_text(const MaxBatch& found) {
  const std::string tries =
      fmt::format("by the plan {}, {} tries", found.largest_planned, found.search.tries.size());
  const std::string where =
      fmt::format("{}, {} pixels, {}", name_of(found.precision), found.image_size, found.device);
  if (found.search.batch == 0)
    return fmt::format("no batch runs a step, not even --bs 1 ({}): {}\n", tries, where);
  return fmt::format(
      "largest batch that runs a step: --bs {} ({}), planned {:.0f} MiB, peak {:.0f} MiB: {}\n",
      found.search.batch, tries, static_cast<double>(found.planned_bytes) / kMiB,
      static_cast<double>(found.peak_bytes) / kMiB, where);
}

}  // namespace plumb
