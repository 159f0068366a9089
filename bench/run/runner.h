// Runs a bound Program, iteration by iteration: compute instructions in order, collectives handed to the
// communicator, lanes ordered by the dependencies of buffers. On an asynchronous device all of this enqueues.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "bench/data/batch_source.h"
#include "comm/communicator.h"
#include "kernels/device.h"
#include "kernels/program/program.h"

namespace plumb {

class Runner {
 public:
  // All must outlive it. `communicator` may be null: then no instruction may be a collective.
  Runner(const Program& program, Device& device, Communicator* communicator, BatchSource& source);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // From now on an iteration is one launch. Wants a device that can capture and a communicator, if any,
  // that enqueues; best after an iteration, which loads what is loaded at first use.
  void capture();
  bool captured() const { return captured_; }

  // `between`: called between instructions where the host computes them; whatever it throws ends the
  // iteration there.
  void run_iteration(const std::function<void()>& between = {});
  // Stamps every instruction (Device::stamp), and runs instruction by instruction even after capture().
  void run_stamped_iteration();

  // Seconds, all iterations so far, that a host that computes stood still for communication: waits, and the
  // calls that start collectives and let them move on. Elsewhere IterationMetrics::exposed_seconds has them.
  double exposed_communication_seconds() const { return exposed_seconds_; }
  // Seconds, all iterations so far, in which at least one collective that the host carries was under way:
  // from its start until the host saw its end.
  double communicating_seconds() const { return communicating_seconds_; }

 private:
  struct Action {
    InstructionId instruction = 0;
    std::vector<InstructionId> wait_for;  // instructions of other lanes that must have ended first
    bool signals = false;                 // an instruction of another lane waits for it
    bool takes_batch = false;             // the first one that waits for the batch
  };
  enum class Mode { plain, stamped, capturing };
  void load_batches(Mode mode);
  void run_instructions(Mode mode, const std::function<void()>& between = {});
  void run(const Action& action);
  void wait_for(const Action& action, Mode mode);
  void finish(InstructionId collective, Mode mode);
  void stamp_ended_collectives();
  void note_end_of_communication();
  bool host_carries(InstructionId instruction) const;
  template <typename Call>
  void exposed(Call&& call);

  const Program& program_;
  Device& device_;
  Communicator* communicator_;
  BatchSource& source_;
  std::vector<Action> loads_, actions_;        // instructions of the input lane, and all others
  std::vector<Communicator::Ticket> tickets_;  // by InstructionId
  std::vector<bool> in_flight_;                // by InstructionId: collectives that the host carries
  std::vector<bool> end_stamped_;              // by InstructionId: those in flight that are done already
  bool captured_ = false;
  double exposed_seconds_ = 0;
  // When the first collective under way started, and the one that started last: they end in order.
  std::optional<double> communicating_since_;
  InstructionId last_started_ = 0;
  double communicating_seconds_ = 0;
};

}  // namespace plumb
