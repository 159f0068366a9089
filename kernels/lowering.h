// Bookkeeping that every device's describe shares: buffers of parameters and values, and which buffers hold
// the gradient of a value while the Graph is walked backwards.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/program.h"
#include "models/graph.h"

namespace plumb {

// Of an untrained parameter there is no momentum, and the gradient is a buffer like any other of the backward
// pass (Role::activation_gradient, not persistent): a norm's backward writes it and nobody reads it. Of class
// centres that are sampled there is no gradient until the margin loss is lowered: it has rows of its own.
struct ParameterBuffers {
  BufferId master = kNone, momentum = kNone, gradient = kNone;
  std::vector<BufferId>
      copies;  // what forward or backward-data read in place of the master, written by the update
};

struct Lowering {
  const Graph& graph;
  Program program;
  std::vector<ParameterBuffers> parameters;  // by ParameterId
  std::vector<BufferId> statistics;          // by StatisticId
  std::vector<BufferId> values;              // by ValueId
  BufferId labels = 0, state = 0;
  // By ValueId: buffers whose sum is the gradient of the value, as far as the backward walk has come.
  struct Contribution {
    BufferId buffer = 0;
    bool shared = false;  // somebody else reads it too: it must not be overwritten
  };
  std::vector<std::vector<Contribution>> gradients;
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

BufferUse reads(BufferId buffer);
BufferUse writes(BufferId buffer);
BufferUse updates(BufferId buffer);  // reads and writes

Step& add_step(Program& program, Step step);

// The buffers whose sum is the gradient of `value`, brought down to at most `most` by accumulate steps.
std::vector<BufferId> gradient_of(Lowering& lowering, ValueId value, std::size_t most);

// Takes out the buffers that no step uses and no buffer is a view of, and renumbers the others.
void drop_unused_buffers(Program& program);

// Bytes of all buffers in `uses`, each read or write counted once: the traffic that a step can't avoid.
double memory_traffic_bytes(const Program& program, const std::vector<BufferUse>& uses);

}  // namespace plumb
