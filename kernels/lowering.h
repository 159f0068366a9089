// Bookkeeping shared by every device's describe: buffers of parameters and values, and the buffers that hold
// each value's gradient during the backward walk.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/program.h"
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

  Tensors& tensors() { return program.tensors; }
  const Tensors& tensors() const { return program.tensors; }
};

// Storage types of a Graph's tensors on a device.
struct StorageTypes {
  DType activations = DType::f32;
  DType weight_gradients = DType::f32;  // convolution and dense weights; norms and biases are always f32
  std::int64_t image_channels = 3;      // channels of the input after padding
};

// A Program with buffers for all parameters, statistics, values, labels and the state, but no instructions.
Lowering start_lowering(const Graph& graph, const StorageTypes& types, std::size_t state_bytes);

BufferId add_buffer(Program& program, Buffer buffer);
// Adds a buffer with the logical dims of `like`, e.g. the gradient of a value.
BufferId add_buffer_like(Program& program, BufferId like, std::string name, Role role);

// [n, c, h, w] of a value.
std::vector<std::int64_t> nchw(const Shape& shape);

// Adds `instruction` and sets Work::bytes from its operands.
Instruction& add_instruction(Program& program, Instruction instruction);

// The operands of an Update for this parameter.
UpdatedParameter updated_parameter(const Tensors& tensors, ParameterId parameter);

// The buffers whose sum is the gradient of `value`; adds Accumulate instructions until at most `most` remain.
std::vector<BufferId> gradient_of(Lowering& lowering, ValueId value, std::size_t most);

// Removes buffers that no instruction uses and that have no views, and renumbers the rest.
void drop_unused_buffers(Program& program);

// Bytes of all operands, each read or write counted once: the minimum memory traffic of an instruction.
double memory_traffic_bytes(const Program& program, const Operation& operation);

}  // namespace plumb
