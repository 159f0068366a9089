#include "bench/allreduce/replay.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "base/paths.h"
#include "base/steady_clock.h"
#include "bench/data/batch_source.h"
#include "bench/plan/step_plan.h"
#include "bench/run/runner.h"
#include "kernels/program/dependencies.h"
#include "results/simulation/step_model.h"

namespace plumb {
namespace {

// A device that lacks fp16 or bf16 still carries the messages of one that has it.
constexpr const char* kTargetOfHalves = "h200";
constexpr double kSameProgram = 0.02;  // layouts pad gradients by less on any device

BenchOptions run_options(const AllreduceOptions& options) {
  BenchOptions run{.model = options.replay.model};
  run.precision = options.replay.precision;
  run.comm = options.comm;  // so that a single rank exchanges, too
  run.device = options.device;
  run.batch_per_device = options.batch_per_device;
  if (options.bucket_mb) run.bucket_mb = *options.bucket_mb;
  return run;
}

double collective_bytes(const Program& program) {
  double bytes = 0;
  for (const Instruction& instruction : program.instructions)
    if (const auto* one = instruction.as<Collective>()) bytes += static_cast<double>(one->bytes());
  return bytes;
}

void require_same_program(const AllreduceOptions& options, const Program& planned, const Program& recorded) {
  const double wanted = collective_bytes(planned), found = collective_bytes(recorded);
  if (std::abs(found - wanted) <= kSameProgram * wanted) return;
  throw Error(ExitCode::bad_data,
              "--compute {}: it sends {:.0f} bytes per step, and --replay {} sends {:.0f}; use a run of that "
              "model, precision and number of ranks",
              options.compute, found, options.replay.text, wanted);
}

// The value whose name_of() is `name`.
template <typename Enum>
Enum named(const std::string& name, Enum last, const std::string& file) {
  for (int value = 0; value <= static_cast<int>(last); ++value)
    if (name_of(static_cast<Enum>(value)) == name) return static_cast<Enum>(value);
  throw Error(ExitCode::bad_data, "--compute {}: unknown collective '{}'; use a program.json of this version",
              file, printable(name));
}

// A message per collective: written by the instruction that completes it, read by the one that waits for it.
ReplayedProgram program_of(const StepModel& step, const std::string& file) {
  ReplayedProgram replayed;
  Program& program = replayed.program;
  std::vector<Recorded> uses(step.compute.size());
  for (BufferId id = 0; id < step.collectives.size(); ++id) {
    const StepCollective& one = step.collectives[id];
    program.buffers.push_back({.name = one.name, .bytes = static_cast<std::size_t>(one.bytes)});
    if (one.after > 0) uses[one.after - 1].uses.push_back({id, Access::write});
    if (one.before < uses.size()) uses[one.before].uses.push_back({id, Access::read});
  }
  const auto add = [&](Instruction instruction, double seconds) {
    program.instructions.push_back(std::move(instruction));
    replayed.seconds.push_back(seconds);
  };
  BufferId next = 0;
  for (std::size_t i = 0; i <= step.compute.size(); ++i) {
    for (; next < step.collectives.size() && step.collectives[next].after <= i; ++next) {
      const StepCollective& one = step.collectives[next];
      const DType dtype = named(one.dtype, DType::u8, file);
      add({.name = one.name,
           .operation = Collective{.kind = named(one.kind, Collective::Kind::broadcast, file),
                                   .buffer = next,
                                   .elements = static_cast<std::size_t>(one.bytes) / bytes_of(dtype),
                                   .dtype = dtype,
                                   .parts = {next}},
           .lane = Lane::communication},
          0);
    }
    if (i < step.compute.size())
      add({.name = step.compute[i].name, .operation = std::move(uses[i])}, step.compute[i].seconds);
  }
  return replayed;
}

// The program for the runner: collectives in the exchange's buffers, and compute that sleeps.
class PlayedStep {
 public:
  PlayedStep(Exchange& exchange, const ReplayedProgram& replayed, const std::vector<BufferId>& messages,
             bool with_compute)
      : device_(exchange.device()), program_(replayed.program) {
    std::size_t next = 0;
    for (Instruction& instruction : program_.instructions)
      if (auto* collective = std::get_if<Collective>(&instruction.operation))
        collective->buffer = messages.at(next++);
    if (!with_compute) {
      std::erase_if(program_.instructions,
                    [](const Instruction& instruction) { return !instruction.as<Collective>(); });
      return;
    }
    const auto dependencies = cross_lane_dependencies(program_);
    for (InstructionId id = 0; id < program_.instructions.size(); ++id)
      if (!program_.instructions[id].as<Collective>())
        program_.instructions[id].run = [this, seconds = replayed.seconds.at(id),
                                         waits = !dependencies[id].empty()] { compute(seconds, waits); };
  }
  PlayedStep(const PlayedStep&) = delete;
  PlayedStep& operator=(const PlayedStep&) = delete;

  const Program& program() const { return program_; }
  double waited_seconds() const { return waited_seconds_; }

 private:
  // The host sleeps for the compute lane, so where that waits for a GPU's communication lane, the host does.
  void compute(double seconds, bool waits) {
    if (waits && device_.queue(Lane::compute)) {
      const double start = steady_seconds();
      device_.synchronize();
      waited_seconds_ += steady_seconds() - start;
    }
    // Waking up late is made up for by the sleeps after it; time spent elsewhere isn't.
    owed_seconds_ += seconds;
    if (owed_seconds_ <= 0) return;
    const double start = steady_seconds();
    std::this_thread::sleep_for(std::chrono::duration<double>(owed_seconds_));
    owed_seconds_ -= steady_seconds() - start;
  }

  Device& device_;
  Program program_;
  double waited_seconds_ = 0, owed_seconds_ = 0;
};

struct StepTimes {
  ValueRange seconds, exposed;
};

StepTimes time_steps(Exchange& exchange, const PlayedStep& step, const TransferMeasure& how) {
  const Job& job = exchange.job();
  FixedBatch no_batch("nothing", {}, {});
  Runner runner(step.program(), exchange.device(), &exchange.communicator(), no_batch);
  std::vector<double> exposed;
  const auto so_far = [&] { return runner.exposed_communication_seconds() + step.waited_seconds(); };
  const auto iteration = [&] {
    const double before = so_far();
    runner.run_iteration();
    exposed.push_back(so_far() - before);
  };
  const std::vector<double> seconds =
      job.gather(exchange.time_iterations(iteration, how.warmup, how.iterations));
  exposed.erase(exposed.begin(), exposed.begin() + how.warmup);
  const std::vector<double> waits = job.gather(exposed);
  if (job.rank() != 0) return {};
  return {times_over_ranks(seconds, job.size()).iterations, times_over_ranks(waits, job.size()).iterations};
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
  const StepPlan plan = make_step_plan(run, limits, rank, world_size, preparation);
  if (options.compute.empty()) {
    replayed.program = plan.program;
    return replayed;
  }
  const StepModel step = read_recorded_step(options.compute).step;
  if (step.collectives.empty())
    throw Error(ExitCode::bad_data,
                "--compute {}: expected collectives; use a run of several ranks, or of one with --comm",
                options.compute);
  ReplayedProgram recorded = program_of(step, options.compute);
  require_same_program(options, plan.program, recorded.program);
  recorded.described_for = std::move(replayed.described_for);
  return recorded;
}

double MeasuredReplay::hidden_share() const {
  if (alone_seconds.median <= 0) return 0;
  return std::clamp(1 - exposed_seconds.median / alone_seconds.median, 0.0, 1.0);
}

MeasuredReplay measure_replay(Exchange& exchange, const ReplayedProgram& replayed,
                              const std::vector<BufferId>& messages, const TransferMeasure& how) {
  MeasuredReplay measured{.collectives = messages.size(), .bytes = collective_bytes(replayed.program)};
  measured.alone_seconds = time_steps(exchange, PlayedStep(exchange, replayed, messages, false), how).seconds;
  if (replayed.seconds.empty()) return measured;
  measured.compute_seconds = std::accumulate(replayed.seconds.begin(), replayed.seconds.end(), 0.0);
  const StepTimes step = time_steps(exchange, PlayedStep(exchange, replayed, messages, true), how);
  measured.step_seconds = step.seconds;
  measured.exposed_seconds = step.exposed;
  return measured;
}

}  // namespace plumb
