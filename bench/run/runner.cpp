#include "bench/run/runner.h"

#include <algorithm>
#include <stdexcept>

#include "base/steady_clock.h"
#include "kernels/program/dependencies.h"

namespace plumb {

Runner::Runner(const Program& program, Device& device, Communicator* communicator, BatchSource& source)
    : program_(program),
      device_(device),
      communicator_(communicator),
      source_(source),
      tickets_(program.instructions.size()),
      in_flight_(program.instructions.size(), false),
      end_stamped_(program.instructions.size(), false) {
  const auto dependencies = HappensBefore(program).waits();
  std::vector<bool> signals(program.instructions.size(), false);
  for (const std::vector<InstructionId>& before : dependencies)
    for (InstructionId id : before) signals[id] = true;
  for (InstructionId id = 0; id < program.instructions.size(); ++id) {
    const Lane lane = program.instructions[id].lane;
    if (lane == Lane::communication && !communicator)
      throw std::logic_error("instruction " + program.instructions[id].name + " needs a communicator");
    Action action{.instruction = id, .wait_for = dependencies[id], .signals = signals[id]};
    (lane == Lane::input ? loads_ : actions_).push_back(std::move(action));
  }
  const auto takes_batch = std::ranges::find_if(actions_, [&](const Action& action) {
    return std::ranges::any_of(action.wait_for, [&](InstructionId before) {
      return program.instructions[before].lane == Lane::input;
    });
  });
  if (takes_batch != actions_.end()) takes_batch->takes_batch = true;
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

bool Runner::host_carries(InstructionId instruction) const {
  return program_.instructions[instruction].lane == Lane::communication && !communicator_->enqueues();
}

void Runner::capture() {
  device_.step_capture()->capture([&] { run_instructions(Mode::capturing); });
  captured_ = true;
}

void Runner::run_iteration(const std::function<void()>& between) {
  load_batches(Mode::plain);
  if (captured_) {
    for (const Action& load : loads_) device_.wait(load.instruction, Lane::compute);
    if (!loads_.empty()) device_.stamp_wait(Wait::data, true);
    device_.step_capture()->replay();
  } else {
    run_instructions(Mode::plain, between);
  }
  if (communicator_) exposed([&] { communicator_->progress(); });
  device_.end_iteration();
}

void Runner::run_stamped_iteration() {
  load_batches(Mode::stamped);
  run_instructions(Mode::stamped);
  if (communicator_) communicator_->progress();
  device_.end_iteration();
}

// Runs outside the captured graph because the batch changes every iteration. The compute lane's wait begins
// when it has ended the iteration before, whatever the host waits for meanwhile.
void Runner::load_batches(Mode mode) {
  if (loads_.empty()) return;
  device_.stamp_wait(Wait::data, false);
  for (const Action& load : loads_) {
    const PixelBatch batch = source_.next();
    if (mode == Mode::stamped) device_.stamp(load.instruction, Lane::input, false);
    device_.stage_batch(batch.pixels, batch.labels);
    if (mode == Mode::stamped) device_.stamp(load.instruction, Lane::input, true);
    device_.signal(load.instruction, Lane::input);
  }
}

void Runner::run_instructions(Mode mode, const std::function<void()>& between) {
  const bool computes_here = !device_.queue(Lane::compute);
  for (const Action& action : actions_) {
    if (between && computes_here) between();
    const Lane lane = program_.instructions[action.instruction].lane;
    wait_for(action, mode);
    if (mode == Mode::stamped) device_.stamp(action.instruction, lane, false);
    run(action);
    if (!host_carries(action.instruction)) {
      if (mode == Mode::stamped) device_.stamp(action.instruction, lane, true);
      if (action.signals) device_.signal(action.instruction, lane);
    }
    if (communicator_ && !communicator_->enqueues()) {
      exposed([&] { communicator_->progress(); });
      if (communicating_since_ && communicator_->done(tickets_[last_started_])) note_end_of_communication();
    }
    if (mode == Mode::stamped) stamp_ended_collectives();
  }
  for (const Action& action : actions_)
    if (in_flight_[action.instruction]) finish(action.instruction, mode);
}

void Runner::run(const Action& action) {
  const Instruction& instruction = program_.instructions[action.instruction];
  if (instruction.run) {
    instruction.run();
  } else if (const auto* collective = instruction.as<Collective>()) {
    const double before = steady_seconds();
    exposed([&] {
      tickets_[action.instruction] = communicator_->start(*collective, device_.data(collective->buffer));
    });
    in_flight_[action.instruction] = host_carries(action.instruction);
    if (host_carries(action.instruction)) {
      if (!communicating_since_) communicating_since_ = before;
      last_started_ = action.instruction;
    }
    end_stamped_[action.instruction] = false;
  } else {
    throw std::logic_error("instruction " + instruction.name + " is not bound");
  }
}

void Runner::wait_for(const Action& action, Mode mode) {
  const Lane lane = program_.instructions[action.instruction].lane;
  const bool exposes = lane == Lane::compute &&
                       std::any_of(action.wait_for.begin(), action.wait_for.end(), [&](InstructionId before) {
                         return program_.instructions[before].lane == Lane::communication;
                       });
  if (exposes) device_.stamp_wait(Wait::collectives, false);
  for (InstructionId before : action.wait_for) {
    const Lane other = program_.instructions[before].lane;
    if (other == Lane::communication && host_carries(before)) {
      // Collectives end in the order in which they started: those before it are waited for with it.
      for (const Action& earlier : actions_)
        if (earlier.instruction <= before && in_flight_[earlier.instruction])
          finish(earlier.instruction, mode);
    }
    // A replay waits for its batch as a whole.
    if (other != Lane::input || mode != Mode::capturing) device_.wait(before, lane);
  }
  if (exposes) device_.stamp_wait(Wait::collectives, true);
  if (action.takes_batch && mode != Mode::capturing) device_.stamp_wait(Wait::data, true);
}

// Collectives end when the communicator says so, which may be long before anybody waits for them.
void Runner::stamp_ended_collectives() {
  for (const Action& action : actions_) {
    const InstructionId id = action.instruction;
    if (!in_flight_[id] || end_stamped_[id] || !communicator_->done(tickets_[id])) continue;
    device_.stamp(id, Lane::communication, true);
    end_stamped_[id] = true;
  }
}

void Runner::note_end_of_communication() {
  if (communicating_since_) communicating_seconds_ += steady_seconds() - *communicating_since_;
  communicating_since_.reset();
}

void Runner::finish(InstructionId collective, Mode mode) {
  exposed([&] { communicator_->wait(tickets_[collective]); });
  if (collective == last_started_) note_end_of_communication();
  in_flight_[collective] = false;
  if (mode == Mode::stamped && !end_stamped_[collective])
    device_.stamp(collective, Lane::communication, true);
  device_.signal(collective, Lane::communication);
}

}  // namespace plumb
