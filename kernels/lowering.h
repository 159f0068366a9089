// Bookkeeping that every device's describe shares: buffers of parameters and values, and which buffers hold
// the gradient of a value while the Graph is walked backwards.
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
  // By ValueId: buffers whose sum is the gradient of the value, as far as the backward walk has come.
  struct Contribution {
    BufferId buffer = 0;
    bool shared = false;  // somebody else reads it too: it must not be overwritten
  };
  std::vector<std::vector<Contribution>> gradients;

  Tensors& tensors() { return program.tensors; }
  const Tensors& tensors() const { return program.tensors; }
};

// How a device holds what a Graph declares.
struct StorageTypes {
  DType activations = DType::f32;
  DType weight_gradients = DType::f32;  // of convolutions and dense weights; norms and biases are always f32
  std::int64_t image_channels = 3;      // channels that the input is padded to
};

// A Program with the buffers of all parameters, statistics, values, labels and the state, and no steps.
Lowering start_lowering(const Graph& graph, const StorageTypes& types, std::size_t state_bytes);

BufferId add_buffer(Program& program, Buffer buffer);
// A further activation-like buffer of the same logical dims as `like`, e.g. the gradient of a value.
BufferId add_buffer_like(Program& program, BufferId like, std::string name, Role role);

// [n, c, h, w] of a value.
std::vector<std::int64_t> nchw(const Shape& shape);

// Adds `step` with Work::bytes of its operands.
Step& add_step(Program& program, Step step);

// What an Update does to this parameter.
UpdatedParameter updated_parameter(const Tensors& tensors, ParameterId parameter);

// The buffers whose sum is the gradient of `value`, brought down to at most `most` by accumulate steps.
std::vector<BufferId> gradient_of(Lowering& lowering, ValueId value, std::size_t most);

// Takes out the buffers that no step uses and no buffer is a view of, and renumbers the others.
void drop_unused_buffers(Program& program);

// Bytes of all operands, each read or write counted once: the traffic that a step can't avoid.
double memory_traffic_bytes(const Program& program, const Operation& operation);

}  // namespace plumb
