#include "bench/allreduce/replay.h"

#include "bench/data/batch_source.h"
#include "bench/plan/step_plan.h"
#include "bench/run/runner.h"

namespace plumb {
namespace {

// A device that lacks fp16 or bf16 still carries the messages of one that has it.
constexpr const char* kTargetOfHalves = "h200";

BenchOptions run_options(const AllreduceOptions& options) {
  BenchOptions run{.model = options.replay.model};
  run.precision = options.replay.precision;
  run.comm = options.comm;  // so that a single rank exchanges, too
  run.device = options.device;
  run.batch_per_device = options.batch_per_device;
  if (options.bucket_mb) run.bucket_mb = *options.bucket_mb;
  return run;
}

}  // namespace

ReplayedProgram replayed_program(const AllreduceOptions& options, Device& device, int rank, int world_size) {
  ReplayedProgram replayed;
  BenchOptions run = run_options(options);
  const bool is_able = device.limits().flops_per_second.contains(run.precision);
  DeviceLimits limits = is_able ? device.limits() : *find_target(kTargetOfHalves);
  if (!is_able) replayed.described_for = limits.name;
  Preparation preparation;
  if (is_able)
    preparation.prepare = [&](const Graph& graph, Program& program) { device.prepare(graph, {}, program); };
  run = resolve(run, limits, world_size);
  replayed.program = make_step_plan(run, limits, rank, world_size, preparation).program;
  std::erase_if(replayed.program.instructions,
                [](const Instruction& instruction) { return !instruction.as<Collective>(); });
  return replayed;
}

MeasuredReplay measure_replay(Exchange& exchange, const Program& program, const TransferMeasure& how) {
  MeasuredReplay measured{.collectives = program.instructions.size()};
  for (const Instruction& instruction : program.instructions)
    measured.bytes += static_cast<double>(instruction.as<Collective>()->bytes());
  const Job& job = exchange.job();
  const auto unused = make_batch_source({});
  Runner runner(program, exchange.device(), &exchange.communicator(), *unused);
  const std::vector<double> seconds =
      job.gather(exchange.time_iterations([&] { runner.run_iteration(); }, how.warmup, how.iterations));
  if (job.rank() == 0) measured.alone_seconds = times_over_ranks(seconds, job.size()).iterations;
  return measured;
}

}  // namespace plumb
