// Runs a Program on a device instruction by instruction, each held against the reference over the operands as
// the device had them. Works through kernels/device.h alone, so the same tests serve every device.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kernels/device.h"
#include "kernels/program/memory_plan.h"
#include "tests/conformance/instruction_reference.h"
#include "tests/kernels/graph_builder.h"

namespace plumb {

class CheckedProgram {
 public:
  // Prepares and binds. Between buffers lie guard bytes; what no instruction and no caller has written is NaN
  // (bytes of 0xFF), but for persistent buffers, which are 0. Adds a parameter to the Graph for every buffer:
  // by these a device's own layouts are written and read.
  CheckedProgram(Device& device, Graph graph, const UpdateRule& rule, Program program);
  // EXPECTs whole guards, and buffers as the last instruction that wrote them left them.
  ~CheckedProgram();
  CheckedProgram(const CheckedProgram&) = delete;
  CheckedProgram& operator=(const CheckedProgram&) = delete;

  const Program& program() const { return program_; }
  Device& device() { return device_; }

  // In the public order, row-major. Values are rounded to the buffer's dtype.
  void write(BufferId buffer, const Doubles& values);
  const Doubles& held(BufferId buffer) const { return held_.at(buffer); }
  // Parameters, statistics and the batch.
  void write(const TestTensors& tensors);
  void write(const StepState& state);
  // The next step's batch, for a Program with load_batch.
  void stage(const std::vector<std::uint8_t>& pixels, const std::vector<std::int32_t>& labels);
  StepState state();

  // Runs the instruction and EXPECTs what it made. A collective fills the other ranks' parts with numbers.
  void check(InstructionId instruction);
  // All instructions, and the loss.
  void check_step();
  // Runs the instruction without a check; results go to held().
  void run(InstructionId instruction);

 private:
  Doubles read(BufferId buffer);
  bool holds_floats(BufferId buffer) const;
  std::vector<std::byte> download(std::size_t offset, std::size_t bytes);
  void upload(std::size_t offset, const std::vector<std::byte>& bytes);
  void lay_out();
  void fill();
  void write_rows(BufferId buffer, const Doubles& values);
  void refresh(BufferId written);
  void meet_other_ranks(const Collective& collective);
  void expect(std::string_view operand, BufferId buffer, const Expected& expected) const;

  Device& device_;
  Graph graph_;
  UpdateRule rule_;
  Program program_;
  MemoryPlan plan_;
  std::vector<std::pair<std::size_t, std::size_t>> guards_;  // offset and bytes
  ParameterId first_buffer_ = 0;                             // the parameter of buffer 0
  Operands held_;                                            // empty: never written
  InstructionReference reference_;
  std::uint64_t collectives_ = 0;
};

}  // namespace plumb
