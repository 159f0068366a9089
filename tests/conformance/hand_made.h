// Programs and values that tests choose themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/program/program.h"
#include "tests/conformance/checked_program.h"

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

  // A buffer that start() fills: with these values, or with normal ones.
  BufferId add(DType dtype, std::vector<std::int64_t> dims, Doubles values);
  BufferId add_normal(DType dtype, std::vector<std::int64_t> dims, std::uint64_t seed, double deviation = 1,
                      double mean = 0);
  void write(BufferId id, Doubles values) { written_.emplace_back(id, std::move(values)); }
  std::unique_ptr<CheckedProgram> start(Device& device) const;

 private:
  std::vector<std::pair<BufferId, Doubles>> written_;
};

// Standard normal values, each exact in `dtype`; other seeds give others.
Doubles normal_values(DType dtype, std::size_t count, std::uint64_t seed);

}  // namespace plumb
