// The walk over a Graph that lowers it to a Program, and the operations that all devices lower alike.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/program/lowering.h"
#include "kernels/program/margin_lowering.h"
#include "models/graph.h"

namespace plumb {

// A device's describer derives from it, adds forward(i, op) and backward(i, op) for the other operations, and
// may hide some of these. `i` is the operation's index.
class GraphLowering {
 public:
  void forward(std::size_t i, const Pool& op) { pool_forward(i, op, value(op.in), {}, {}); }
  void backward(std::size_t i, const Pool& op);
  void forward(std::size_t i, const Dense& op);
  void backward(std::size_t i, const Dense& op);
  void forward(std::size_t i, const Dropout& op);
  void backward(std::size_t i, const Dropout& op);
  void forward(std::size_t i, const SoftmaxLoss& op);
  void backward(std::size_t, const SoftmaxLoss&) {}
  void forward(std::size_t i, const MarginLoss& op);
  void backward(std::size_t i, const MarginLoss& op);

 protected:
  // Buffers that an operation's forward keeps for other instructions.
  struct Saved {
    BufferId mean = 0, inv_std = 0;
    BufferId sums = 0, scale_shift = 0, coefficients = 0;  // if convolutions compute parts of the norm
    std::optional<BufferId> relu_mask, argmax, winners;
    // Buffers of a convolution without an output (instructions/block_end.h); product_in is its a or b.
    BufferId product_in = 0, products = 0, channel_sums = 0;
    BufferId scaled = 0, scaled_transposed = 0, deviations = 0;
    BufferId d_out = 0, d_out_sums = 0;  // of its norm: the gradient of the block's output
    BufferId cast_in = 0;                // a dense layer's input in its compute dtype
    MarginBuffers margin;
  };

  explicit GraphLowering(Lowering lowering) : lowering_(std::move(lowering)), saved_(graph_.ops.size()) {}
  GraphLowering(const GraphLowering&) = delete;

  // Lowers all operations: forward in the Graph's order, then backward in the opposite one.
  template <typename Device>
  void walk(Device& device) {
    for (std::size_t i = 0; i < graph_.ops.size(); ++i)
      std::visit([&](const auto& op) { device.forward(i, op); }, graph_.ops[i]);
    for (std::size_t i = graph_.ops.size(); i-- > 0;)
      std::visit([&](const auto& op) { device.backward(i, op); }, graph_.ops[i]);
  }

  // Loads a batch of pixels into one of `parts` staging buffers, and normalizes it.
  void load_batch(const Normalization& normalization, std::int64_t parts);
  // Sets Work::bytes from the operands, and Work::macs of operation `op`.
  Instruction& add(std::string name, Operation operation, Phase phase, std::size_t op = kNone);
  void pool_forward(std::size_t i, const Pool& op, BufferId in, std::optional<Read> scale_shift,
                    std::optional<Write> winners);
  // Without the operands that give a mask, and the residual's gradient. d_out: one buffer or two.
  BatchNormBackward norm_backward(std::size_t i, const BatchNorm& op, const std::vector<BufferId>& d_out,
                                  WriteOrAdd d_in) const;

  BufferId value(ValueId id) const { return tensors_.values[id]; }
  const Shape& shape(ValueId id) const { return graph_.values[id].shape; }
  double bytes(BufferId id) const { return static_cast<double>(lowering_.program.buffers[id].bytes); }
  BufferId gradient(ParameterId id) const { return tensors_.parameters[id].gradient; }
  BufferId master(ParameterId id) const { return tensors_.parameters[id].master; }

  BufferId add_saved(std::string name, DType dtype, std::vector<std::int64_t> dims) {
    return add_buffer(lowering_.program, {.name = std::move(name), .dtype = dtype, .dims = std::move(dims)});
  }
  BufferId new_gradient(ValueId id, const std::string& by) {
    return new_gradient(id, by, lowering_.gradient_types[id]);
  }
  BufferId new_gradient(ValueId id, const std::string& by, DType dtype);
  void contribute(ValueId id, BufferId buffer, bool shared = false) {
    lowering_.gradients[id].push_back({buffer, shared});
  }
  // The buffers whose sum is the gradient of `id`; adds Accumulate instructions until at most `most` remain.
  std::vector<BufferId> gradients_of(ValueId id, std::size_t most);
  BufferId gradient_of(ValueId id) { return gradients_of(id, 1).front(); }
  // Whether only the backward of the value's producer reads this part of its gradient. It may pass the part
  // on, and then must not overwrite it.
  bool is_overwritable(ValueId id, BufferId part) const {
    return std::ranges::any_of(lowering_.gradients[id], [&](const Lowering::Contribution& one) {
      return one.buffer == part && !one.shared;
    });
  }

  // The same elements in this dtype: `from` itself, or the result of a cast instruction of operation `i`.
  BufferId as_dtype(DType dtype, BufferId from, std::string name, Phase phase, std::size_t i);

  Lowering lowering_;
  const Graph& graph_ = lowering_.graph;
  Tensors& tensors_ = lowering_.tensors();
  std::vector<Saved> saved_;  // by op

 private:
  // In the dtype that the value's gradient has.
  void contribute_as_stored(ValueId id, BufferId buffer, const std::string& by, std::size_t i) {
    contribute(id, as_dtype(lowering_.gradient_types[id], buffer, by + ".cast_d_in", Phase::backward, i));
  }
};

}  // namespace plumb
