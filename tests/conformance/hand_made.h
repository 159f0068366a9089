// Programs and values that tests choose themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/program/program.h"
#include "tests/conformance/instruction_reference.h"

namespace plumb {

// A Program made by hand: instructions over buffers whose values a test chooses.
class HandMade {
 public:
  // Ops of the Graph refer to values from 1 on; value 0 stands for a batch that nothing reads.
  explicit HandMade(Graph graph = {});
  Graph graph;
  Program program;
  UpdateRule rule;

  BufferId add(DType dtype, std::vector<std::int64_t> dims, bool persistent = true);
  BufferId state() const { return program.tensors.state; }
  InstructionId add(Operation operation, std::size_t op = 0);
};

// Standard normal values, each exact in `dtype`; other seeds give others.
Doubles normal_values(DType dtype, std::size_t count, std::uint64_t seed);

}  // namespace plumb
