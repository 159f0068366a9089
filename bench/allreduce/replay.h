// Replay of a training step's exchange: exactly the messages that training sends.
#pragma once

#include <string>

#include "bench/allreduce/allreduce_options.h"
#include "bench/allreduce/exchange.h"
#include "bench/allreduce/measured_transfer.h"
#include "kernels/program/program.h"
#include "results/record/fields.h"

namespace plumb {

// The step that --replay names: its collectives.
struct ReplayedProgram {
  Program program;
  std::string described_for;  // a GPU's target where this device lacks the precision; else empty
};

// The step of the model as a run with these options would plan it.
ReplayedProgram replayed_program(const AllreduceOptions& options, Device& device, int rank, int world_size);

struct MeasuredReplay {
  std::size_t collectives = 0;
  double bytes = 0;          // of all of them, per step
  ValueRange alone_seconds;  // all of them, nothing computed

  static void fields(auto& self, auto&& each) {
    each("collectives", self.collectives), each("bytes", self.bytes, Field{"of all of them, per step"});
    each("alone_seconds", self.alone_seconds, Field{"all of them, nothing computed"});
  }
};

// Times the steps by training's own runner. `program`: collectives in buffers of the exchange. Every rank
// calls it; the result is complete on rank 0 only.
MeasuredReplay measure_replay(Exchange& exchange, const Program& program, const TransferMeasure& how);

}  // namespace plumb
