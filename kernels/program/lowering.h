// Bookkeeping of a Graph's lowering to a Program: buffers of parameters and values, their storage, and the
// buffers that hold each value's gradient during the backward walk.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernels/program/program.h"
#include "models/graph.h"

namespace plumb {

struct Lowering {
  const Graph& graph;
  Program program;
  // By ValueId: buffers whose sum is the value's gradient, up to the current point of the backward walk.
  struct Contribution {
    BufferId buffer = 0;
    bool shared = false;  // also read elsewhere: must not be overwritten
  };
  std::vector<std::vector<Contribution>> gradients;
  std::vector<DType> op_types;        // by op: dtype of its outputs, weights and their gradients
  std::vector<DType> gradient_types;  // by ValueId
  std::vector<BufferId> weights;      // by ParameterId: the master, or a copy that forward reads instead

  Tensors& tensors() { return program.tensors; }
};

// Storage types of a Graph's tensors on a device.
struct StorageTypes {
  DType activations = DType::f32;
  DType weight_gradients = DType::f32;  // convolution and dense weights; norms and biases are always f32
  std::int64_t image_channels = 3;      // channels of the input after padding
  std::set<ValueId> unstored = {};      // values without a buffer
};

// A Program with buffers for all parameters, statistics, stored values, labels and the state, but no
// instructions.
Lowering start_lowering(const Graph& graph, const StorageTypes& types, std::size_t state_bytes);

// Gives each operation's output and the output's gradient the dtype of Lowering::op_types. Where that is a
// half precision, adds a copy of the weight in it for forward and backward-data, which the update writes, and
// stores the weight's gradient as `weight_gradients`. Logits are f32.
void store_in_op_types(Lowering& lowering, DType weight_gradients);

BufferId add_buffer(Program& program, Buffer buffer);

// [n, c, h, w] of a value.
std::vector<std::int64_t> nchw(const Shape& shape);

// Adds `instruction`. Work::bytes: all its operands, each read or write counted once, the minimum memory
// traffic.
Instruction& add_instruction(Program& program, Instruction instruction);

// The operands of an Update for this parameter.
UpdatedParameter updated_parameter(const Tensors& tensors, ParameterId parameter);

// Adds the UpdateRows of sampled class centers; it reads and writes only the sampled rows of master and
// momentum.
Instruction& add_update_rows(Lowering& lowering, ParameterId parameter, const SampledRows& rows,
                             std::string name, std::optional<Read> overflow = {});

}  // namespace plumb
