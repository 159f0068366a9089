// What describe.cpp shares out: block ends without the output of their convolution
// (kernels/program/instructions/block_end.h), and their gradients, which a convolution completes or an
// instruction of its own masks and sums.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/plan/fusion.h"
#include "kernels/cuda/plan/norm_partition.h"
#include "kernels/cuda/plan/storage.h"
#include "kernels/program/graph_lowering.h"

namespace plumb::cuda {

class BlockEndLowering : public GraphLowering {
 protected:
  BlockEndLowering(Lowering lowering, std::vector<LayerFusion> layers)
      : GraphLowering(std::move(lowering)), layers_(std::move(layers)) {}

  // Lowers a convolution whose output is not stored.
  void forward(std::size_t i, const Conv& op, const UnstoredConv& product);
  void backward(std::size_t i, const Conv& op, const UnstoredConv& product);
  // The norm behind it.
  void statistics_of_product(std::size_t i, const BatchNormMoments& moments);
  void end_with_product(std::size_t i, const BatchNorm& op);
  // Of a block's end whose convolution's output is not stored: its gradient, masked and summed by a
  // convolution or here, goes to its product and to its shortcut.
  void backward(std::size_t i, const BatchNorm& op, const FusedNorm::ByProduct& by);

  // Takes the gradient that the block's other reader left. That is also read by instructions before, so the
  // sum has a buffer of its own.
  ConvBackwardData data_gradient(const Conv& op, const FusedConv::CompletedGradient& completed,
                                 BufferId d_out, BufferId d_in);

  const FusedNorm& fused(std::size_t norm) const { return std::get<FusedNorm>(layers_[norm].how); }
  const BatchNorm& norm_at(std::size_t i) const { return std::get<BatchNorm>(graph_.ops[i]); }
  BufferId add_coefficients(const BatchNorm& norm, std::int64_t norms);
  // The gradient of the norm's output is also the residual's. Without ReLU, or masked, it is the same buffer,
  // read after this norm only if it was shared before.
  void share_with_residual(const BatchNorm& op, BufferId d_out);
  TensorLayout layout() const { return lowering_.program.layout.value(); }

  std::vector<LayerFusion> layers_;
  BufferId counters_ = add_norm_counters(lowering_.program, graph_, layers_);  // shared by all norms

 private:
  // The input of a shortcut's convolution, and its sums.
  void sample_pixels(std::size_t i, const Conv& op);
  // Of the pixels that a 1x1 convolution reads.
  Shape sampled_shape(const Conv& op) const;
  // Adds left^T in, for a convolution whose output is not stored.
  BufferId multiply_channels(std::size_t i, const Conv& op, BufferId left, std::string name);
  // Products of `rows` channels with the convolution's input.
  void set_macs(Instruction& instruction, const Conv& op, std::int64_t rows) const;
  // By an instruction of its own. Of two gradients the smaller one has every second pixel.
  void mask_gradient(std::size_t i, const BatchNorm& op);
  // Whether the gradient of this block's output is summed for its shortcut's norm alone: the last norm's
  // backward is a product's.
  bool sums_for_shortcut(std::size_t end) const;
  // The instruction may sum a gradient for a norm, and does for norm i. Its coefficients have room for so
  // many norms'.
  void set_norm(auto& instruction, std::size_t i, std::int64_t norms = 1);
};

}  // namespace plumb::cuda
