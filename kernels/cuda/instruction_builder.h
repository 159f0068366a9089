// State of the walk over the Graph that describes a GPU's training step, and helpers to add buffers and
// instructions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/fusion.h"
#include "kernels/cuda/storage.h"
#include "kernels/describe.h"
#include "kernels/margin_lowering.h"
#include "models/cost.h"

namespace plumb::cuda {

class InstructionBuilder {
 public:
  InstructionBuilder(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits)
      : graph_(graph),
        storage_(start_storage(graph, options)),
        lowering_(storage_.lowering),
        tensors_(lowering_.tensors()),
        layers_(plan_fusion(graph, options, limits)),
        saved_(graph.ops.size()) {
    lowering_.program.allow_tf32 = options.precision == Precision::tf32;
  }

 protected:
  // Buffers that an operation's forward keeps for other instructions.
  struct Saved {
    BufferId mean = 0, inv_std = 0;
    BufferId sums = 0, scale_shift = 0, coefficients = 0;  // if convolutions compute parts of the norm
    std::optional<BufferId> relu_mask, argmax;
    BufferId cast_in = 0;  // a dense layer's input in its compute dtype
    MarginBuffers margin;
  };

  Instruction& add(std::string name, Operation operation, Phase phase, std::size_t op = kNone) {
    Instruction& instruction = add_instruction(
        lowering_.program,
        {.name = std::move(name), .operation = std::move(operation), .phase = phase, .op = op});
    if (op != kNone && !instruction.as<SoftmaxCrossEntropy>() && !instruction.as<Cast>())
      instruction.work.macs = static_cast<double>(graph_.batch() * macs_per_image(graph_, graph_.ops[op]));
    return instruction;
  }

  BufferId value(ValueId id) const { return tensors_.values[id]; }
  const Shape& shape(ValueId id) const { return graph_.values[id].shape; }
  std::int64_t pixels(ValueId id) const { return shape(id).n * shape(id).h * shape(id).w; }
  double bytes(BufferId id) const { return static_cast<double>(lowering_.program.buffers[id].bytes); }
  BufferId gradient(ParameterId id) const { return tensors_.parameters[id].gradient; }
  BufferId master(ParameterId id) const { return tensors_.parameters[id].master; }

  BufferId add_saved(std::string name, DType dtype, std::vector<std::int64_t> dims) {
    return add_buffer(lowering_.program, {.name = std::move(name), .dtype = dtype, .dims = std::move(dims)});
  }
  BufferId new_gradient(ValueId id, const std::string& by) {
    return new_gradient(id, by, storage_.gradients[id]);
  }
  BufferId new_gradient(ValueId id, const std::string& by, DType dtype) {
    return add_buffer(lowering_.program, {.name = graph_.values[id].name + ".gradient_by." + by,
                                          .role = Role::activation_gradient,
                                          .dtype = dtype,
                                          .dims = nchw(shape(id))});
  }
  void contribute(ValueId id, BufferId buffer, bool shared = false) {
    lowering_.gradients[id].push_back({buffer, shared});
  }

  // The same elements in this dtype: `from` itself, or the result of a cast instruction of operation `i`.
  BufferId as_dtype(DType dtype, BufferId from, std::string name, Phase phase, std::size_t i) {
    Buffer into = lowering_.program.buffers[from];
    if (into.dtype == dtype) return from;
    into.name = name;
    into.bytes = into.bytes / bytes_of(into.dtype) * bytes_of(dtype);
    into.dtype = dtype;
    const BufferId made = add_buffer(lowering_.program, std::move(into));
    add(std::move(name), Cast{.from = from, .into = made}, phase, i);
    return made;
  }

  const Graph& graph_;
  Storage storage_;
  Lowering& lowering_;  // in the storage
  Tensors& tensors_;    // in the Lowering
  std::vector<LayerFusion> layers_;
  std::vector<Saved> saved_;  // by op
};

}  // namespace plumb::cuda
