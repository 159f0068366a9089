// Gradients between backward and the next iteration: sums, casts, collectives, updates.
#pragma once

#include "kernels/program/instructions/dtype.h"
#include "kernels/program/instructions/operand.h"

namespace plumb {

using ParameterId = std::size_t;  // index into Graph::parameters

// into += from.
struct Accumulate {
  static constexpr std::string_view kName = "accumulate";
  ReadWrite into;
  Read from;
  static void operands(auto& self, auto&& each) { each("into", self.into, "from", self.from); }
};

// into = scale * from, in another dtype.
struct Cast {
  static constexpr std::string_view kName = "cast";
  Read from;
  Write into;
  double scale = 1;
  static void operands(auto& self, auto&& each) { each("from", self.from, "into", self.into); }
};

// Runs in the communicator, in place. allgather and reduce_scatter split the buffer into one part of
// elements / world size per rank: allgather sends rank r's part r to all ranks; reduce_scatter leaves the sum
// of all parts r in part r of rank r, and undefined values in the other parts. broadcast sends rank 0's
// buffer to all ranks; training needs none.
struct Collective {
  static constexpr std::string_view kName = "reduce";
  enum class Kind { allreduce_sum, allreduce_max, allgather, reduce_scatter_sum, broadcast };
  Kind kind = Kind::allreduce_sum;
  BufferId buffer = 0;       // the root buffer (bucket)
  std::size_t elements = 0;  // of the whole buffer
  DType dtype = DType::f32;
  std::vector<ReadWrite> parts = {};  // the buffer, or the views inside it
  std::size_t bytes() const { return elements * bytes_of(dtype); }
  static void operands(auto& self, auto&& each) { each("parts", self.parts); }
};

// overflow = 1 if an element of a gradient is not finite, else 0.
struct FindOverflow {
  static constexpr std::string_view kName = "find_overflow";
  Write overflow;  // f32 [1]
  std::vector<Read> gradients;
  static void operands(auto& self, auto&& each) {
    each("overflow", self.overflow, "gradients", self.gradients);
  }
};

struct UpdatedParameter {
  ParameterId parameter;
  ReadWrite master, momentum;  // f32
  Read gradient;
  std::vector<Write> copies;  // copies of the new weight in other layouts or dtypes
};

// SGD with momentum for all listed parameters. Skipped on overflow.
struct Update {
  static constexpr std::string_view kName = "update";
  Read state;
  std::optional<Read> overflow;
  std::vector<UpdatedParameter> parameters;
  static void operands(auto& self, auto&& each) {
    each("state", self.state, "overflow", self.overflow);
    for (auto& updated : self.parameters) {
      each("master", updated.master);
      each("momentum", updated.momentum);
      each("gradient", updated.gradient);
      each("copies", updated.copies);
    }
  }
};

// SGD with momentum for the sampled rows of class centers only.
struct UpdateRows {
  static constexpr std::string_view kName = "update_rows";
  ParameterId parameter;
  ReadWrite master, momentum;          // f32 [classes, E]
  Read d_rows, samples, sample_count;  // [C, E], i32 [C], i32 [1]
  Read state;
  std::optional<Read> overflow;
  static void operands(auto& self, auto&& each) {
    each("master", self.master, "momentum", self.momentum, "d_rows", self.d_rows, "samples", self.samples,
         "sample_count", self.sample_count, "state", self.state, "overflow", self.overflow);
  }
};

// iteration += 1, and updates the loss scale.
struct AdvanceState {
  static constexpr std::string_view kName = "advance_state";
  ReadWrite state;
  std::optional<Read> overflow;
  static void operands(auto& self, auto&& each) { each("state", self.state, "overflow", self.overflow); }
};

}  // namespace plumb
