#include "bench/run/runner.h"

#include <algorithm>
#include <stdexcept>

#include "bench/run/step_timer.h"
#include "kernels/dependencies.h"

namespace plumb {

Runner::Runner(const Program& program, Device& device, Communicator* communicator, BatchSource& source)
    : program_(program),
      device_(device),
      communicator_(communicator),
      source_(source),
      tickets_(program.steps.size()),
      in_flight_(program.steps.size(), false) {
  const auto dependencies = cross_lane_dependencies(program);
  std::vector<bool> signals(program.steps.size(), false);
  for (const std::vector<StepId>& before : dependencies)
    for (StepId id : before) signals[id] = true;
  for (StepId id = 0; id < program.steps.size(); ++id) {
    const Lane lane = program.steps[id].lane;
    if (lane == Lane::communication && !communicator)
      throw std::logic_error("step " + program.steps[id].name + " needs a communicator");
    Action action{.step = id, .wait_for = dependencies[id], .signals = signals[id]};
    (lane == Lane::input ? loads_ : actions_).push_back(std::move(action));
  }
}

Runner::~Runner() {
  if (captured_) device_.step_capture()->drop_capture();
}

template <typename Call>
void Runner::exposed(Call&& call) {
  const double start = steady_seconds();
  call();
  exposed_seconds_ += steady_seconds() - start;
}

bool Runner::host_carries(StepId step) const {
  return program_.steps[step].lane == Lane::communication && !communicator_->enqueues();
}

void Runner::capture() {
  device_.step_capture()->capture([&] { run_steps(Mode::capturing); });
  captured_ = true;
}

void Runner::run_iteration() {
  load_batches(Mode::plain);
  if (captured_) {
    for (const Action& load : loads_) device_.wait(load.step, Lane::compute);
    device_.step_capture()->replay();
  } else {
    run_steps(Mode::plain);
  }
  if (communicator_) exposed([&] { communicator_->progress(); });
  device_.end_iteration();
}

void Runner::run_stamped_iteration() {
  load_batches(Mode::stamped);
  run_steps(Mode::stamped);
  if (communicator_) communicator_->progress();
  device_.end_iteration();
}

// Runs outside the captured graph because the batch changes every iteration.
void Runner::load_batches(Mode mode) {
  for (const Action& load : loads_) {
    const Batch batch = source_.next();
    if (mode == Mode::stamped) device_.stamp(load.step, Lane::input, false);
    device_.write_batch(batch.images, batch.labels);
    if (mode == Mode::stamped) device_.stamp(load.step, Lane::input, true);
    device_.signal(load.step, Lane::input);
  }
}

void Runner::run_steps(Mode mode) {
  for (const Action& action : actions_) {
    const Lane lane = program_.steps[action.step].lane;
    wait_for(action, mode);
    if (mode == Mode::stamped) device_.stamp(action.step, lane, false);
    run(action);
    if (!host_carries(action.step)) {
      if (mode == Mode::stamped) device_.stamp(action.step, lane, true);
      if (action.signals) device_.signal(action.step, lane);
    }
    if (communicator_ && !communicator_->enqueues()) exposed([&] { communicator_->progress(); });
  }
  for (const Action& action : actions_)
    if (in_flight_[action.step]) finish(action.step, mode);
}

void Runner::run(const Action& action) {
  const Step& step = program_.steps[action.step];
  if (step.run) {
    step.run();
  } else if (const auto* collective = step.as<Collective>()) {
    exposed(
        [&] { tickets_[action.step] = communicator_->start(*collective, device_.data(collective->buffer)); });
    in_flight_[action.step] = host_carries(action.step);
  } else {
    throw std::logic_error("step " + step.name + " is not bound");
  }
}

void Runner::wait_for(const Action& action, Mode mode) {
  const Lane lane = program_.steps[action.step].lane;
  const bool exposes = lane == Lane::compute &&
                       std::any_of(action.wait_for.begin(), action.wait_for.end(), [&](StepId before) {
                         return program_.steps[before].lane == Lane::communication;
                       });
  if (exposes) device_.stamp_wait(false);
  for (StepId before : action.wait_for) {
    const Lane other = program_.steps[before].lane;
    if (other == Lane::communication && host_carries(before)) {
      // Collectives end in the order in which they started: those before it are waited for with it.
      for (const Action& earlier : actions_)
        if (earlier.step <= before && in_flight_[earlier.step]) finish(earlier.step, mode);
    }
    // A replay waits for its batch as a whole.
    if (other != Lane::input || mode != Mode::capturing) device_.wait(before, lane);
  }
  if (exposes) device_.stamp_wait(true);
}

void Runner::finish(StepId collective, Mode mode) {
  exposed([&] { communicator_->wait(tickets_[collective]); });
  in_flight_[collective] = false;
  if (mode == Mode::stamped) device_.stamp(collective, Lane::communication, true);
  device_.signal(collective, Lane::communication);
}

}  // namespace plumb
