#include "bench/run/timed_run.h"

#include <cmath>
#include <string>
#include <thread>
#include <utility>

#include "bench/run/device_memory.h"

namespace plumb {
namespace {

constexpr std::chrono::microseconds kBetweenLooks{20};

// Enough for a mean of their middle third, little compared with a run.
constexpr int kStampedIterations = 10;

bool is_asynchronous(Device& device) {
  return device.queue(Lane::compute) != nullptr;
}

}  // namespace

double StepTimer::window_seconds(std::int64_t warmup) const {
  if (warmup < 0 || iterations() <= warmup) return 0;
  const double begin = warmup == 0 ? 0 : end_seconds_[static_cast<std::size_t>(warmup - 1)];
  return end_seconds_.back() - begin;
}

TimedRun::TimedRun(BoundStep& step, Measurements& measured)
    : step_(step),
      measured_(measured),
      runner_(step.plan.program, *step.device, step.communicator.get(), *step.source),
      agreed_(step.options.iterations) {
  for (const Instruction& instruction : step.plan.program.instructions)
    if (const auto* collective = instruction.as<Collective>()) bytes_per_iteration_ += collective->bytes();
}

void TimedRun::run(const std::function<void(std::int64_t)>& ended, const std::function<void()>& look_up) {
  ended_ = ended;
  look_up_ = look_up;
  measured_.metrics.reserve(static_cast<std::size_t>(agreed_));
  waited_in_warmup_ = step_.source->waited_seconds();
  measured_.timer = StepTimer(static_cast<std::size_t>(agreed_));
  step_.device->start_clock();
  while (goes_on()) {
    enter_iteration();
    runner_.run_iteration(look_up_);
    if (++started_ == 1 && step_.captures) {
      collect(0);
      runner_.capture();
    }
    collect(kIterationsUnderWay);
  }
  collect(0);
  conclude();
}

// Runs --iters, then until --seconds are over since the warm-up: rank 0 estimates from the mean step how many
// more iterations that takes, for all ranks, and again after those.
bool TimedRun::goes_on() {
  if (started_ < agreed_) return true;
  if (step_.options.seconds == 0) return false;
  collect(0);
  const std::int64_t warmup = step_.options.warmup;
  const double elapsed = measured_.timer.window_seconds(warmup), left = step_.options.seconds - elapsed;
  const double step = elapsed / static_cast<double>(ended_iterations() - warmup);
  std::uint64_t more = left > 0 ? static_cast<std::uint64_t>(std::ceil(left / step)) : 0;
  step_.job.broadcast(more);
  agreed_ += static_cast<std::int64_t>(more);
  return more != 0;
}

// A device that carries collectives itself shows when an iteration has ended, not which collective has.
void TimedRun::enter_iteration() {
  StatusBoard* const board = step_.job.board();
  if (!board) return;
  board->set_phase(started_ < step_.options.warmup ? RunPhase::warmup : RunPhase::window);
  board->set_iteration(started_);
  if (step_.communicator && step_.communicator->enqueues())
    recorded_[static_cast<std::size_t>(started_) % recorded_.size()] =
        board->enter("iteration", std::to_string(started_), bytes_per_iteration_);
}

void TimedRun::leave_iteration(std::int64_t iteration) {
  std::uint64_t& sequence = recorded_[static_cast<std::size_t>(iteration) % recorded_.size()];
  if (sequence != 0) step_.job.board()->leave(std::exchange(sequence, 0));
}

// Notes which iterations have ended, and waits until at most `under_way` have not.
void TimedRun::collect(std::int64_t under_way) {
  while (ended_iterations() < started_) {
    const std::optional<double> end = step_.device->next_end();
    if (end) {
      note_end(*end);
      if (look_up_) look_up_();
    } else if (started_ - ended_iterations() > under_way) {
      if (step_.communicator) step_.communicator->progress();
      if (look_up_) look_up_();
      std::this_thread::sleep_for(kBetweenLooks);
    } else {
      return;
    }
  }
}

void TimedRun::note_end(double end_seconds) {
  measured_.timer.lap(end_seconds);
  const std::int64_t iteration = ended_iterations() - 1;
  leave_iteration(iteration);
  measured_.metrics.push_back(step_.device->metrics(static_cast<std::uint64_t>(iteration)));
  if (iteration >= step_.options.warmup) {
    device_exposed_ += measured_.metrics.back().exposed_seconds;
    device_waited_ += measured_.metrics.back().data_wait_seconds;
  }
  ended_(iteration);
  if (ended_iterations() == step_.options.warmup) {
    host_exposed_in_warmup_ = runner_.exposed_communication_seconds();
    communicating_in_warmup_ = runner_.communicating_seconds();
    waited_in_warmup_ = step_.source->waited_seconds();
  }
}

void TimedRun::conclude() {
  const auto steps = static_cast<double>(ended_iterations() - step_.options.warmup);
  const bool measures = is_asynchronous(*step_.device);
  const double exposed =
      measures ? device_exposed_ : runner_.exposed_communication_seconds() - host_exposed_in_warmup_;
  const double waited = measures ? device_waited_ : step_.source->waited_seconds() - waited_in_warmup_;
  measured_.exposed_communication_seconds = exposed / steps;
  measured_.communicating_seconds = (runner_.communicating_seconds() - communicating_in_warmup_) / steps;
  measured_.data_wait_seconds = waited / steps;
}

void TimedRun::run_stamped() {
  Device& device = *step_.device;
  const Graph& graph = step_.plan.graph;
  const TensorFile before = read_tensors(graph, device);
  device.start_clock();
  for (int i = 0; i < kStampedIterations; ++i) {
    if (is_asynchronous(device)) runner_.run_iteration();
    runner_.run_stamped_iteration();
    wait_for_lane(device, step_.communicator.get(), Lane::compute);
    device.synchronize();
    while (device.next_end()) {
    }
    const std::vector<InstructionTime> ended = device.step_times();
    measured_.stamped.insert(measured_.stamped.end(), ended.begin(), ended.end());
  }
  for (ParameterId p = 0; p < graph.parameters.size(); ++p)
    device.write_parameter(p, before.floats.at(graph.parameters[p].name).values);
  for (StatisticId s = 0; s < graph.statistics.size(); ++s)
    device.write_statistic(s, before.floats.at(graph.statistics[s].name).values);
}

}  // namespace plumb
