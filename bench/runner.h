// Runs a bound Program, iteration by iteration: compute steps in order, collectives handed to the
// communicator as they come and waited for where a later step needs them, batches fetched where the Program
// loads them.
#pragma once

#include <vector>

#include "bench/data/batch_source.h"
#include "comm/communicator.h"
#include "kernels/device.h"
#include "kernels/program.h"

namespace plumb {

class Runner {
 public:
  // All must outlive it. `communicator` may be null in a world of one: then no step may be a collective.
  Runner(const Program& program, Device& device, Communicator* communicator, BatchSource& source);

  void run_iteration();

  // Seconds, all iterations so far, that the compute lane stood still for communication: what it waited for
  // collectives that had not ended, and the calls that start them and let them move on.
  double exposed_communication_seconds() const { return exposed_seconds_; }

 private:
  struct Action {
    StepId step = 0;
    std::vector<StepId> wait_for;  // collectives that must have ended first
  };
  void run(const Action& action);
  void wait_for(StepId collective);
  template <typename Call>
  void exposed(Call&& call);

  const Program& program_;
  Device& device_;
  Communicator* communicator_;
  BatchSource& source_;
  std::vector<Action> actions_;
  std::vector<Communicator::Ticket> tickets_;  // by StepId
  std::vector<bool> in_flight_;                // by StepId
  double exposed_seconds_ = 0;
};

}  // namespace plumb
