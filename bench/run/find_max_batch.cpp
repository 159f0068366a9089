#include "bench/run/find_max_batch.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string_view>

#include "base/console/messages.h"
#include "base/console/print.h"
#include "base/steady_clock.h"
#include "bench/plan/step_plan.h"
#include "bench/run/run_program.h"
#include "bench/run/runner.h"
#include "bench/run/stages.h"
#include "kernels/program/roofline.h"
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

// "0.4 s", "28 s".
std::string seconds_text(double seconds) {
  return fmt::format("{:.{}f} s", seconds, seconds < 10 ? 1 : 0);
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
  const DeviceLimits& limits = run.device->limits();
  MaxBatch found;
  found.device = run.device->description();
  found.model = options.model->name;
  found.precision = options.precision;
  found.world_size = job.size();
  found.image_size = options.image_size;
  found.memory_bytes = memory_bytes;
  found.in_host_memory = limits.in_host_memory;
  auto largest = static_cast<std::uint64_t>(
      largest_planned_batch(options, limits, job.rank(), job.size(), memory_bytes));
  job.broadcast(largest);  // hosts may have different memory: all start at the same batch
  found.largest_planned = static_cast<std::int64_t>(largest);
  const StepPlan plan = make_step_plan(with_batch(options, std::max<std::int64_t>(1, found.largest_planned)),
                                       limits, job.rank(), job.size());
  found.step_seconds = roofline(plan.program, limits, options.precision).seconds;
  return found;
}

}  // namespace

std::int64_t largest_tensor_elements(const Program& program) {
  std::size_t largest = 0;
  for (const Buffer& buffer : program.buffers)
    if (buffer.role == Role::activation || buffer.role == Role::activation_gradient)
      largest = std::max(largest, buffer.bytes / bytes_of(buffer.dtype));
  return static_cast<std::int64_t>(largest);
}

MaxBatch find_max_batch(const Job& job, const BenchOptions& options, const SearchListener& listener,
                        const SearchBounds& bounds) {
  MaxBatch found;
  BenchOptions resolved;
  DeviceLimits limits;
  double memory = 0;
  {
    const ResolvedRun run(job, with_batch(options, 1));
    resolved = run.options;
    limits = run.device->limits();
    memory = bounds.memory_bytes.value_or(run.memory_bytes());
    found = plan_search(run, memory);
  }
  if (listener.planned) listener.planned(found);
  const auto outcome = [&](std::int64_t batch, const std::function<void()>& set_up) -> BatchTry {
    try {
      set_up();
      return {.batch = batch, .ran = true};
    } catch (const FailureOfThisRank&) {
      throw;
    } catch (const Error& error) {
      if (error.code() == ExitCode::out_of_memory) return {.batch = batch};
      // Rank 0's tensors, on all ranks: they must answer alike.
      const auto program = [&] {
        return make_step_plan(with_batch(resolved, batch), limits, 0, job.size()).program;
      };
      const bool no_engine = error.code() == ExitCode::internal &&
                             std::string_view(error.what()).find(kNoEngine) != std::string_view::npos;
      if (no_engine && largest_tensor_elements(program()) > bounds.most_elements)
        return {.batch = batch, .no_engine = true};
      throw;
    }
  };
  const auto tell = [&](const BatchTry& one) {
    if (listener.tried) listener.tried(one);
    return one;
  };
  const auto run = [&](std::int64_t batch) {
    const double start = steady_seconds();
    BatchTry one = outcome(batch, [&] {
      try_batch(job, with_batch(options, batch), bounds.memory_bytes ? memory : HUGE_VAL, found);
    });
    one.seconds = steady_seconds() - start;
    return tell(one);
  };
  std::int64_t estimate = found.largest_planned, highest = kMaxBatch;
  std::vector<BatchTry> refused;
  if (limits.in_host_memory) {
    const auto plan = [&](std::int64_t batch) {
      const BatchTry one = outcome(batch, [&] { plan_batch(job, with_batch(options, batch), memory); });
      if (!one.ran) refused.push_back(tell(one));
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
  const MaxBatch found =
      find_max_batch(job, options,
                     {.planned = [&](const MaxBatch& planned) { messages.say(search_text(planned)); },
                      .tried = [&](const BatchTry& one) { messages.say(to_text(one)); }});
  job.together([&] {
    if (job.rank() == 0)
      print_text(options.json ? document_json(kMaxBatchSchema, found).dump(2) + "\n" : to_text(found));
  });
}

std::string search_text(const MaxBatch& planned) {
  const std::string fits = fmt::format("looking for the largest --bs: by the plan {} fits {:.1f} GiB",
                                       planned.largest_planned, planned.memory_bytes / kMiB / 1024);
  if (!planned.in_host_memory)
    return fits + "; some ten batches run a step or two, each takes as long as a run's start";
  return fmt::format("{}; one step of it takes {} or more", fits, seconds_text(planned.step_seconds));
}

std::string to_text(const BatchTry& one, const SearchBounds& bounds) {
  const std::string text = fmt::format("--bs {} {}", one.batch, one.ran ? "runs" : "doesn't fit");
  if (one.ran && one.seconds > 0) return fmt::format("{} (took {})", text, seconds_text(one.seconds));
  if (one.ran || !one.no_engine) return text;
  return fmt::format("{}: no engine computes tensors of more than {} elements", text, bounds.most_elements);
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
