// Replay of a training step's exchange: exactly the messages that training sends, alone and between the
// step's compute instructions.
#pragma once

#include <string>
#include <vector>

#include "bench/allreduce/allreduce_options.h"
#include "bench/allreduce/exchange.h"
#include "bench/allreduce/measured_transfer.h"
#include "kernels/program/program.h"
#include "results/record/fields.h"

namespace plumb {

// The step that --replay and --compute name.
struct ReplayedProgram {
  Program program;
  std::vector<double> seconds;  // by InstructionId; empty without --compute
  std::string described_for;    // a GPU's target where this device lacks the precision; else empty
};

// The step of the model as a run with these options would plan it; with --compute the program of the file.
// Throws Error(bad_data) if that sends another number of bytes: it is another model's or precision's.
ReplayedProgram replayed_program(const AllreduceOptions& options, Device& device, int rank, int world_size);

struct MeasuredReplay {
  std::size_t collectives = 0;
  double bytes = 0;                          // of all of them, per step
  ValueRange alone_seconds;                  // all of them, nothing computed
  double compute_seconds = 0;                // sum of the instructions' times; 0 without --compute
  ValueRange step_seconds, exposed_seconds;  // with compute: the step, and its waits for collectives

  // Share of alone_seconds that compute hides: 0 … 1.
  double hidden_share() const;
  static void fields(auto& self, auto&& each) {
    const bool computes = self.compute_seconds > 0;
    each("collectives", self.collectives), each("bytes", self.bytes, Field{"of all of them, per step"});
    each("alone_seconds", self.alone_seconds, Field{"all of them, nothing computed"});
    each("compute_seconds", self.compute_seconds, Field{.about = "of --compute", .written = computes});
    each("step_seconds", self.step_seconds, Field{.written = computes});
    each("exposed_seconds", self.exposed_seconds,
         Field{.about = "in which the step waits for collectives", .written = computes});
    each("hidden_share", self.hidden_share(),
         Field{.about = "of alone_seconds, that compute hides", .written = computes});
  }
};

// Times the steps by training's own runner. `messages`: each collective's buffer in the exchange, in order.
// Every rank calls it; the result is complete on rank 0 only.
MeasuredReplay measure_replay(Exchange& exchange, const ReplayedProgram& replayed,
                              const std::vector<BufferId>& messages, const TransferMeasure& how);

}  // namespace plumb
