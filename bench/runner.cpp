#include "bench/runner.h"

#include <stdexcept>

#include "bench/step_timer.h"
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
  for (StepId id = 0; id < program.steps.size(); ++id) {
    Action action{.step = id};
    for (StepId before : dependencies[id])
      if (program.steps[before].lane == Lane::communication) action.wait_for.push_back(before);
    if (program.steps[id].lane == Lane::communication && !communicator)
      throw std::logic_error("step " + program.steps[id].name + " needs a communicator");
    actions_.push_back(std::move(action));
  }
}

template <typename Call>
void Runner::exposed(Call&& call) {
  const double start = steady_seconds();
  call();
  exposed_seconds_ += steady_seconds() - start;
}

void Runner::run_iteration() {
  for (const Action& action : actions_) {
    run(action);
    if (communicator_) exposed([&] { communicator_->progress(); });
  }
  wait_for(program_.steps.size() - 1);
}

void Runner::run(const Action& action) {
  for (StepId collective : action.wait_for) wait_for(collective);
  const Step& step = program_.steps[action.step];
  if (const auto* compute = std::get_if<ComputeFn>(&step.action)) {
    (*compute)();
  } else if (const auto* collective = std::get_if<Collective>(&step.action)) {
    exposed(
        [&] { tickets_[action.step] = communicator_->start(*collective, device_.data(collective->buffer)); });
    in_flight_[action.step] = true;
  } else if (step.kind == StepKind::load_batch) {
    const Batch batch = source_.next();
    device_.write_batch(batch.images, batch.labels);
  } else {
    throw std::logic_error("step " + step.name + " is not bound");
  }
}

// Collectives of one lane end in the order in which they started: those before `collective` are waited for
// with it.
void Runner::wait_for(StepId collective) {
  for (StepId id = 0; id <= collective; ++id) {
    if (!in_flight_[id]) continue;
    exposed([&] { communicator_->wait(tickets_[id]); });
    in_flight_[id] = false;
  }
}

}  // namespace plumb
