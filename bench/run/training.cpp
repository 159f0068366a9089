#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <thread>

#include "base/console/messages.h"
#include "base/console/print.h"
#include "base/console/progress.h"
#include "base/text.h"
#include "bench/links/host_links.h"
#include "bench/plan/step_plan.h"
#include "bench/run/gpu_monitor.h"
#include "bench/run/partial_result_writer.h"
#include "bench/run/run_program.h"
#include "bench/run/run_record.h"
#include "bench/run/tasks.h"
#include "bench/run/timed_run.h"
#include "comm/launcher.h"
#include "results/anomalies/flags.h"

namespace plumb {
namespace {

// A loss that is not finite on one rank makes all ranks' losses so one iteration later. Rank 0 reports it at
// once; the others wait this many iterations for rank 0.
constexpr int kPatienceOfOtherRanks = 3;

// A rank that a signal came to has this long to end by itself. Launchers send signals to all ranks or to one;
// rank 0 alone ends the job in good order, so the others give it time before they end, and the job with them.
constexpr std::chrono::seconds kPatienceOfRank0{5}, kPatienceForRank0{3};
// mpirun forwards stdout and stderr apart.
constexpr std::chrono::milliseconds kPatienceForLauncher{50};

// On rank 0.
std::vector<ReferenceSpeed> references_of(const Job& job, const BenchOptions& options) {
  std::vector<ReferenceSpeed> references;
  job.together([&] {
    if (job.rank() == 0) references = reference_speeds(options.reference);
  });
  return references;
}

// What a run keeps from stage to stage, also when it fails.
struct Run {
  Run(const DescribedStep& step, const TrainingHooks& its_hooks)
      : job(step.job),
        options(step.options),
        hooks(its_hooks),
        messages(messages_of(job, options)),
        references(references_of(job, options)),
        record(make_record(step)),
        outputs(open_outputs(step, record)),
        keeper(job, record, outputs, hooks.interruption, hooks.watchdog) {
    hooks.interruption.begin(first() ? kPatienceOfRank0 : kPatienceForRank0);
  }
  ~Run() { hooks.interruption.end(); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  bool first() const { return job.rank() == 0; }

  const Job& job;
  const BenchOptions options;
  const TrainingHooks& hooks;
  Messages messages;
  const std::vector<ReferenceSpeed> references;  // rank 0's
  RunRecord record;
  RunOutputs outputs;
  Measurements measured;
  PartialResultWriter keeper;
};

// "training resnet50 fp16 on NVIDIA H200, 2 ranks, batch 128 each"; the table has what --verbose adds.
std::string begin_text(const ResolvedRun& step, const RunRecord& record) {
  constexpr std::size_t kNameColumns = 30;
  const BenchOptions& options = step.options;
  const std::string& name = step.device->limits().name;
  std::string text = fmt::format("training {} {} on {}, {}, batch {} each", record.model, record.precision,
                                 options.verbose ? name : shortened(name, kNameColumns),
                                 counted(step.job.size(), "rank"), record.batch_per_device);
  if (!step.why_no_gpu.empty())
    text += options.verbose ? fmt::format(" (no usable GPU: {})", step.why_no_gpu) : " (no usable GPU)";
  if (!options.verbose) return text;
  if (options.image_size != options.model->image_size) text += fmt::format(", {} px", options.image_size);
  const std::string head = head_options(record.config);
  return head.empty() ? text : text + ", " + head;
}

// For --verbose.
std::string plan_text(const PlannedStep& step) {
  const Program& program = step.plan.program;
  const auto collectives = std::ranges::count(program.instructions, Lane::communication, &Instruction::lane);
  return fmt::format("{}; {}{} ops, {}{}{} MiB planned", step.source->description(),
                     step.options.model->margin_head ? shard_text(step.plan.graph) + " of rank 0; " : "",
                     program.instructions.size(), step.captures ? "captured as one CUDA graph, " : "",
                     collectives == 0
                         ? ""
                         : fmt::format("{} over {}, ", counted(collectives, "collective"), step.options.comm),
                     step.plan.memory.arena_bytes >> 20);
}

// Throws Error(verification_failed) for a loss that is not finite, also with --no-check. `not_finite`: such
// losses in a row.
void require_finite_loss(const Run& run, std::int64_t iteration, int& not_finite) {
  not_finite = std::isfinite(run.measured.metrics.back().loss) ? 0 : not_finite + 1;
  if (not_finite >= (run.first() ? 1 : kPatienceOfOtherRanks))
    throw Error(ExitCode::verification_failed,
                "the loss is not finite at iteration {0}, so this run is not a measurement; lower --lr {1} "
                "or check the data",
                iteration, run.record.config.at("learning_rate").dump());
}

// Throws Interrupted if a signal has come in. No rank asks another one: those may be stuck.
void require_no_signal(const Run& run) {
  const int signal = run.hooks.interruption.signal();
  if (signal == 0) return;
  const bool open_end = run.options.seconds > 0;
  throw Interrupted(signal, run.measured.timer.iterations(), open_end ? 0 : run.options.iterations);
}

// Shows what rank 0 measured, and ends the other ranks without a word: a launcher that ends a job because
// some rank failed sends rank 0 a signal too, and that rank's sentence is to stay the last.
void end_interrupted(Run& run, const Interrupted& interrupted) {
  run.job.announce_end(static_cast<int>(interrupted.code()));
  run.keeper.fail(interrupted, run.record);
  run.outputs.log.reset();
  try {
    if (run.first()) print_result(run.record, run.references, run.options.json);
  } catch (const Error&) {
    // Nobody reads it any more. result.json has it.
  }
  if (run.job.size() > 1) run.job.abort(static_cast<int>(interrupted.code()));
}

// For failures that other ranks may not see.
[[noreturn]] void end_alone(Run& run, const Error& error) {
  run.keeper.fail(error, run.record);
  run.outputs.log.reset();  // an empty log goes
  end_for_all(std::string(run.options.model->program), run.job, error);
  throw FailureOfThisRank(error);
}

void plan(Run& run, DescribedStep&& described, std::optional<BoundStep>& step) {
  run.messages.say(begin_text(described, run.record));
  if (run.options.probe) run.record.links = probe_host_links(run.job, run.messages);
  step.emplace(PlannedStep(std::move(described)));
  if (const auto& remarks = step->tuning.remarks; !remarks.empty())
    run.messages.warn(fmt::format("{}", fmt::join(remarks, "; ")));
  run.messages.detail(plan_text(*step));
  if (!step->remark.empty()) run.messages.say(step->remark);
  add_plan(*step, run.record);
  run.keeper.update(run.record);
  run.job.together([&] {
    if (!run.first()) return;
    if (!step->tuning.trials.empty()) run.outputs.results->write_text("tuning.csv", trials_csv(step->tuning));
    run.outputs.results->write_json("program.json", program_json(step->plan));
  });
}

// A single rank sends nothing. Throws FailureOfThisRank where another rank was lost meanwhile.
void check_sums(Run& run, BoundStep& step) {
  if (run.job.size() == 1) return;
  run.record.checks["sums_exact"] = "skipped";
  if (!run.options.check) return;
  run.record.checks["sums_exact"] = false;
  try {
    check_exchange(step, run.hooks.damage_message);
  } catch (const Error& error) {
    if (error.code() == ExitCode::peer_lost) end_alone(run, error);
    throw;
  }
  run.record.checks["sums_exact"] = true;
}

// The GPU's record of the window, on the monitor's clock.
GpuRecord stop_monitor(const BoundStep& step, const StepTimer& timer, GpuMonitor& monitor) {
  const double start = steady_seconds() - timer.elapsed_seconds();
  const double end = start + timer.end_seconds().back();
  monitor.stop();
  return monitor.record(end - timer.window_seconds(step.options.warmup), end, step.job.rank(),
                        step.device->unique_id());
}

// The window, and the iterations for a profile after it.
void run_iterations(Run& run, BoundStep& step, TimedRun& timed) {
  Measurements& measured = run.measured;
  ProgressBar bar(run.first() && !run.options.quiet ? stderr : nullptr, terminal_of(stderr),
                  run.options.iterations, run.record.batch_per_device * run.job.size());
  const std::unique_ptr<GpuMonitor> monitor = watch_gpu(step.device->unique_id());
  int not_finite = 0;
  const auto ended = [&](std::int64_t iteration) {
    run.keeper.note(measured.timer.step_seconds().back(), measured.metrics.back().loss);
    if (run.outputs.log) log_iteration(run.options, measured, *run.outputs.log);
    require_finite_loss(run, iteration, not_finite);
    bar.update(measured.timer.iterations(), measured.timer.elapsed_seconds());
    if (run.hooks.after_iteration) run.hooks.after_iteration(iteration, step);
  };
  std::function<void()> look_up;
  if (run.first()) look_up = [&] { require_no_signal(run); };
  run.hooks.interruption.looks_begin();
  timed.run(ended, look_up);
  run.hooks.interruption.looks_end();
  if (run.hooks.interruption.signal() != 0 && !run.first()) std::this_thread::sleep_for(kPatienceForRank0);
  require_no_signal(run);
  if (monitor) measured.gpu = stop_monitor(step, measured.timer, *monitor);
  bar.clear();
  add_window(step, measured, run.record);
  if (run.options.profile || run.options.trace) timed.run_stamped();
}

void measure(Run& run, BoundStep& step) {
  run.job.barrier();
  TimedRun timed(step, run.measured);
  try {
    run_iterations(run, step, timed);
  } catch (const Interrupted& interrupted) {
    end_interrupted(run, interrupted);
    throw FailureOfThisRank(interrupted);
  } catch (const Error& error) {
    end_alone(run, error);
  }
}

// Writes weights, profile, result and log. Returns the table of the profile, if one is asked for.
std::string finish(Run& run, const BoundStep& step) {
  const std::string& weights = run.options.save_weights;
  TensorFile tensors;
  if (!weights.empty()) tensors = gather_tensors(run.job, step.plan.graph, *step.device);
  std::string profile;
  run.job.together([&] {
    if (!run.first()) return;
    if (!weights.empty()) write_safetensors(weights, tensors, "--save-weights");
    profile = write_profile(step, run.record, run.measured.stamped, *run.outputs.results);
    run.record.log_files = run.outputs.log->paths();
    run.record.status = "ok";
    for (const Note& flag : run_flags(run.record)) run.record.warnings.push_back(flag.text);
    // Before the log gets its name: no .log without a result that says ok.
    run.keeper.succeed(run.record);
    run.outputs.log->finish();
  });
  return profile;
}

// A failure to print does not fail the run: its files are complete.
void print(Run& run, const BoundStep& step, const std::string& profile) {
  run.job.together([&] {
    if (!run.first()) return;
    const bool json = run.options.json;
    print_result(run.record, run.references, json);
    const std::string engines = !json && run.options.verbose ? engines_text(step.plan) : "";
    for (const std::string& table : {engines, json ? "" : profile})
      if (!table.empty()) print_text("\n" + table);
    // A launcher reads the two streams apart, and may be late with the table.
    if (has_launcher()) std::this_thread::sleep_for(kPatienceForLauncher);
    run.messages.last(run.outputs.results->folder());
  });
}

}  // namespace

void run_training(const Job& job, const BenchOptions& options, const TrainingHooks& hooks) {
  DescribedStep described{ResolvedRun(job, options)};
  Run run(described, hooks);
  std::optional<BoundStep> step;  // outlives the report of a failure
  std::string profile;
  try {
    plan(run, std::move(described), step);
    check_sums(run, *step);
    const std::uint64_t initial_checksum = parameter_checksum(*step);
    measure(run, *step);
    job.enter_phase(RunPhase::checking);
    add_measurements(*step, run.measured, run.record);
    if (const CorruptFiles corrupt = corrupt_of_all_ranks(job, *step->source); corrupt.count > 0)
      run.messages.warn(corrupt_text(corrupt));
    check_run(*step, initial_checksum, run.record);
    profile = finish(run, *step);
  } catch (const Error& error) {
    run.keeper.fail(error, run.record);
    throw;
  }
  print(run, *step, profile);
}

}  // namespace plumb
