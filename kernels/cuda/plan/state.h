// State that the device keeps from iteration to iteration, and its reports through pinned memory.
#pragma once

#include <cstdint>

#include "kernels/program/step_state.h"

namespace plumb::cuda {

// In the "state" buffer.
struct State {
  StepState step;
  std::uint64_t wait_began_ns = 0;  // start of the current wait
  // Finished waits of this iteration, for collectives and for its batch.
  std::uint64_t exposed_ns = 0, data_wait_ns = 0;
};

// One entry per iteration in a ring of kMetricsKept in page-locked host memory; iteration i is at i modulo
// kMetricsKept. The loss writes loss, top1 and top5 (a margin loss -1); advance_state the rest.
struct IterationRecord {
  double loss = 0;
  int top1 = 0, top5 = 0;
  float loss_scale = 1;
  int skipped = 0;
  std::uint64_t exposed_ns = 0, data_wait_ns = 0;
};

// A row's part of the softmax loss of the batch; the workspace has one per row.
struct RowLoss {
  double loss = 0;
  std::int32_t top1 = 0, top5 = 0;
};

}  // namespace plumb::cuda
