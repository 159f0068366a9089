// A Program of six instructions on all lanes, and a device's timestamps for three iterations of it.
#pragma once

#include <utility>
#include <vector>

#include "kernels/device.h"
#include "kernels/program/program.h"

namespace plumb {

enum StampedInstruction : InstructionId { kLoad, kConv, kNorm, kReduce, kUpdate, kAdvance };

inline Program profiled_program() {
  Program program;
  program.buffers = {{.name = "every operand", .dtype = DType::f16, .bytes = 2}};
  const auto add = [&](const char* name, Operation operation, Phase phase, Lane lane, Work work) {
    program.instructions.push_back(
        {.name = name, .operation = std::move(operation), .phase = phase, .lane = lane, .work = work});
  };
  add("load_batch", LoadBatch{0, 0}, Phase::input, Lane::input, {});
  add("layer1.0.conv1.forward", ConvForward{0, 0, 0}, Phase::forward, Lane::compute, {1e9, 1e7});
  add("layer1.0.bn1.backward", BatchNormBackward{0, 0, 0, 0, 0, 0, 0, 0, 0}, Phase::backward, Lane::compute,
      {0, 1e8});
  add("reduce.0", Collective{}, Phase::reduce, Lane::communication, {0, 1e8});
  add("update", Update{0}, Phase::update, Lane::compute, {0, 1e4});
  add("advance_state", AdvanceState{0}, Phase::update, Lane::compute, {});
  return program;
}

// Each iteration: load 0 … 1 ms, conv 1 … 5 (the second iteration: 1 … 9), then from its end on: norm for 2
// ms, reduce 5 ms from the middle of norm, a gap of 1 ms after norm, update 0.5 ms, advance_state 0.5 ms.
inline std::vector<InstructionTime> three_iterations() {
  std::vector<InstructionTime> times;
  double start = 100e-3;
  for (int iteration = 0; iteration < 3; ++iteration) {
    const double conv_end = start + (iteration == 1 ? 9e-3 : 5e-3);
    const double norm_end = conv_end + 2e-3;
    times.push_back({kLoad, start, start + 1e-3});
    times.push_back({kConv, start + 1e-3, conv_end});
    times.push_back({kNorm, conv_end, norm_end});
    times.push_back({kReduce, norm_end - 1e-3, norm_end + 4e-3});
    times.push_back({kUpdate, norm_end + 1e-3, norm_end + 1.5e-3});
    times.push_back({kAdvance, norm_end + 1.5e-3, norm_end + 2e-3});
    start = norm_end + 10e-3;
  }
  return times;
}

}  // namespace plumb
