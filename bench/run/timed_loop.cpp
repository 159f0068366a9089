#include "bench/run/timed_loop.h"

#include <array>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <utility>

#include "bench/run/device_communicator.h"

namespace plumb {
namespace {

// Enough to keep a device busy while the host writes a log line, few enough to notice a failure soon.
constexpr std::int64_t kIterationsUnderWay = 4;
constexpr std::chrono::microseconds kBetweenLooks{20};

// Iterations that are stamped: enough for a mean of their middle third, little beside a run.
constexpr int kStampedIterations = 10;

bool runs_behind_the_host(Device& device) {
  return device.queue(Lane::compute) != nullptr;
}

std::uint64_t reduced_bytes(const Program& program) {
  std::uint64_t bytes = 0;
  for (const Instruction& instruction : program.instructions)
    if (const auto* collective = instruction.as<Collective>())
      bytes += collective->elements * bytes_of(collective->dtype);
  return bytes;
}

class TimedLoop {
 public:
  TimedLoop(const Job& job, Session& session, Runner& runner, TimedIterations& result,
            const std::function<void(std::int64_t)>& ended, const std::function<void()>& look_up)
      : job_(job), session_(session), runner_(runner), result_(result), ended_(ended), look_up_(look_up) {}

  void run() {
    const BenchOptions& options = session_.options;
    agreed_ = options.iterations;
    result_.timer = StepTimer(static_cast<std::size_t>(agreed_));
    result_.metrics.reserve(static_cast<std::size_t>(agreed_));
    waited_in_warmup_ = session_.source->waited_seconds();
    session_.device->start_clock();
    result_.timer.start();
    while (goes_on()) {
      enter_iteration();
      runner_.run_iteration(look_up_);
      if (++started_ == 1 && session_.captures) {
        collect(0);
        runner_.capture();
      }
      collect(kIterationsUnderWay);
    }
    collect(0);
    conclude();
  }

 private:
  std::int64_t told() const { return result_.timer.iterations(); }

  // Runs --iters, then goes on until --seconds are over since the warm-up: rank 0 estimates from the mean
  // step how many more that takes, for all ranks, and again after those.
  bool goes_on() {
    if (started_ < agreed_) return true;
    if (session_.options.seconds == 0) return false;
    collect(0);
    const std::int64_t warmup = session_.options.warmup;
    const double elapsed = result_.timer.window_seconds(warmup), left = session_.options.seconds - elapsed;
    const double step = elapsed / static_cast<double>(told() - warmup);
    std::uint64_t more = left > 0 ? static_cast<std::uint64_t>(std::ceil(left / step)) : 0;
    job_.broadcast(more);
    agreed_ += static_cast<std::int64_t>(more);
    return more != 0;
  }

  // A device that carries collectives itself shows when an iteration has ended, not which collective has.
  void enter_iteration() {
    StatusBoard* const board = job_.board();
    if (!board) return;
    board->set_phase(started_ < session_.options.warmup ? RunPhase::warmup : RunPhase::window);
    board->set_iteration(started_);
    const Communicator* const carrier = session_.communicator.get();
    if (carrier && carrier->enqueues())
      recorded_[static_cast<std::size_t>(started_) % recorded_.size()] =
          board->enter(RecordedKind::iteration, std::to_string(started_), bytes_per_iteration_);
  }
  void leave_iteration(std::int64_t iteration) {
    std::uint64_t& sequence = recorded_[static_cast<std::size_t>(iteration) % recorded_.size()];
    if (sequence != 0) job_.board()->leave(std::exchange(sequence, 0));
  }

  // Takes note of what has ended, and waits until at most so many iterations are under way.
  void collect(std::int64_t under_way) {
    while (told() < started_) {
      const std::optional<double> end = session_.device->next_end();
      if (end) {
        tell(*end);
        if (look_up_) look_up_();
      } else if (started_ - told() > under_way) {
        if (session_.communicator) session_.communicator->progress();
        if (look_up_) look_up_();
        std::this_thread::sleep_for(kBetweenLooks);
      } else {
        return;
      }
    }
  }

  void tell(double end_seconds) {
    result_.timer.lap(end_seconds);
    const std::int64_t iteration = told() - 1;
    leave_iteration(iteration);
    result_.metrics.push_back(session_.device->metrics(static_cast<std::uint64_t>(iteration)));
    if (iteration >= session_.options.warmup) {
      device_exposed_ += result_.metrics.back().exposed_seconds;
      device_waited_ += result_.metrics.back().data_wait_seconds;
    }
    ended_(iteration);
    if (told() == session_.options.warmup) {
      host_exposed_in_warmup_ = runner_.exposed_communication_seconds();
      communicating_in_warmup_ = runner_.communicating_seconds();
      waited_in_warmup_ = session_.source->waited_seconds();
    }
  }

  void conclude() {
    const auto steps = static_cast<double>(told() - session_.options.warmup);
    const bool measures = runs_behind_the_host(*session_.device);
    const double exposed =
        measures ? device_exposed_ : runner_.exposed_communication_seconds() - host_exposed_in_warmup_;
    const double waited = measures ? device_waited_ : session_.source->waited_seconds() - waited_in_warmup_;
    result_.exposed_communication_seconds = exposed / steps;
    result_.communicating_seconds = (runner_.communicating_seconds() - communicating_in_warmup_) / steps;
    result_.data_wait_seconds = waited / steps;
  }

  const Job& job_;
  Session& session_;
  Runner& runner_;
  TimedIterations& result_;
  const std::function<void(std::int64_t)>& ended_;
  const std::function<void()>& look_up_;
  std::int64_t started_ = 0;
  std::int64_t agreed_ = 0;  // that all ranks run
  const std::uint64_t bytes_per_iteration_ = reduced_bytes(session_.plan.program);
  // Sequence numbers on the board of the iterations under way; 0: none.
  std::array<std::uint64_t, kIterationsUnderWay + 1> recorded_{};
  double device_exposed_ = 0, device_waited_ = 0, host_exposed_in_warmup_ = 0, communicating_in_warmup_ = 0,
         waited_in_warmup_ = 0;
};

}  // namespace

void run_timed(const Job& job, Session& session, Runner& runner, TimedIterations& result,
               const std::function<void(std::int64_t iteration)>& ended,
               const std::function<void()>& look_up) {
  TimedLoop(job, session, runner, result, ended, look_up).run();
}

std::vector<InstructionTime> run_stamped(Session& session, Runner& runner) {
  Device& device = *session.device;
  const Graph& graph = session.plan.graph;
  const TensorFile before = read_tensors(graph, device);
  std::vector<InstructionTime> times;
  device.start_clock();
  for (int i = 0; i < kStampedIterations; ++i) {
    if (runs_behind_the_host(device)) runner.run_iteration();
    runner.run_stamped_iteration();
    wait_for_lane(device, session.communicator.get(), Lane::compute);
    device.synchronize();
    while (device.next_end()) {
    }
    const std::vector<InstructionTime> ended = device.step_times();
    times.insert(times.end(), ended.begin(), ended.end());
  }
  for (ParameterId p = 0; p < graph.parameters.size(); ++p)
    device.write_parameter(p, before.floats.at(graph.parameters[p].name).values);
  for (StatisticId s = 0; s < graph.statistics.size(); ++s)
    device.write_statistic(s, before.floats.at(graph.statistics[s].name).values);
  return times;
}

}  // namespace plumb
