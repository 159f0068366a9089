// What an instruction makes of its operands, in double precision: the ground truth for one instruction on any
// device. Tensors are row-major in their public dims ([n, c, h, w], [out, in, kh, kw], …); bits and integers
// as stored.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "kernels/device.h"
#include "kernels/program/program.h"
#include "models/graph.h"

namespace plumb {

using Doubles = std::vector<double>;

// A result, and per element how far a device may be from it besides the rounding to the result's dtype: a
// number of fp32 roundings of all magnitudes that went into the element, and what rounding in between costs.
// Empty: nothing.
struct Expected {
  Doubles values, slack = {};
};
using Operands = std::vector<Doubles>;  // by BufferId
using Results = std::map<BufferId, Expected>;

// Largest relative error of rounding to f32, f16 or bf16; 0 for integers.
double unit_roundoff(DType dtype);

class InstructionReference {
 public:
  InstructionReference(const Graph& graph, const UpdateRule& rule, const Program& program, DeviceKind kind)
      : graph_(graph), rule_(rule), program_(program), kind_(kind) {}

  // `before`: the operands when the instruction started. `after`: when it had ended; read only where one
  // result is made from another one as it was stored. Throws std::logic_error for instructions without a
  // reference.
  Results run(const Instruction& instruction, const Operands& before, const Operands& after,
              const StepState& state);

  // Of the iteration's loss, once it ran.
  const std::optional<IterationMetrics>& metrics() const { return metrics_; }
  // The state behind AdvanceState.
  StepState next_state(const StepState& state, bool overflow) const;

 private:
  const Graph& graph_;
  const UpdateRule& rule_;
  const Program& program_;
  DeviceKind kind_;
  std::map<std::size_t, std::vector<std::size_t>>
      winners_;  // by op: the element that each window of a max pool took
  std::optional<IterationMetrics> metrics_;

  friend class Run;
};

}  // namespace plumb
