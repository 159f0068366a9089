// What describe.cpp shares out: block ends without the output of their convolution
// (kernels/program/instructions/block_end.h), and their gradients, which a convolution completes or an
// instruction of its own masks and sums. Only describe.cpp includes it.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/plan/fusion.h"
#include "kernels/cuda/plan/storage.h"
#include "kernels/program/graph_lowering.h"

namespace plumb::cuda {

class BlockEndLowering : public GraphLowering {
 protected:
  BlockEndLowering(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits,
                   std::vector<LayerFusion> layers)
      : GraphLowering(start_storage(graph, options, limits, layers)), layers_(std::move(layers)) {}

  // A convolution whose output is not stored.
  void forward(std::size_t i, const Conv& op, const UnstoredConv& product) {
    Saved& saved = saved_[i];
    saved.product_in = value(op.in);
    if (product.norm_in_front)
      saved.channel_sums = saved_[*product.norm_in_front].channel_sums;
    else
      sample_pixels(i, op);
    saved.products = multiply_channels(i, op, saved.product_in, op.name + ".in_products");
  }

  void backward(std::size_t i, const Conv& op, const UnstoredConv& product) {
    const BatchNorm& norm = norm_at(product.norm);
    const Saved& of_norm = saved_[product.norm];
    const BufferId d_out = of_norm.d_out, sums = of_norm.d_out_sums;
    const BufferId products = multiply_channels(i, op, d_out, op.name + ".gradient_products");
    const std::int64_t inputs = shape(op.in).c;
    const BufferId factors = add_saved(op.name + ".factors", lowering_.op_types[i], {inputs, inputs}),
                   shift = add_saved(op.name + ".shift", DType::f32, {inputs + 1});
    ProductNormBackward parameters{.products = products,
                                   .d_out_sums = sums,
                                   .sums = saved_[i].channel_sums,
                                   .deviations = saved_[i].deviations,
                                   .weight = master(op.weight),
                                   .scale = master(norm.scale),
                                   .inv_std = of_norm.inv_std,
                                   .d_weight = gradient(op.weight),
                                   .d_scale = gradient(norm.scale),
                                   .factors = factors,
                                   .shift = shift};
    if (sums != gradient(norm.bias)) parameters.d_bias = gradient(norm.bias);
    // W^T diag(B) W
    add(op.name + ".backward_weights", parameters, Phase::backward, i).work.macs =
        static_cast<double>(inputs * inputs * shape(op.out).c);
    BlockEndBackwardData data{
        .d_out = d_out,
        .in = saved_[i].product_in,
        .scaled = saved_[i].scaled,
        .factors = factors,
        .shift = shift,
        .d_in = op.stride == 1
                    ? new_gradient(op.in, op.name)
                    : add_saved(op.name + ".d_in", lowering_.gradient_types[op.in], nchw(sampled_shape(op))),
        .by_products = product.by_products};
    if (product.norm_in_front && !data.by_products) {
      set_norm(data, *product.norm_in_front);
      data.scale_shift = saved_[*product.norm_in_front].scale_shift;
    }
    Instruction& instruction = add(op.name + ".backward_data", data, Phase::backward, i);
    set_macs(instruction, op, shape(op.out).c + inputs);
    if (data.by_products) instruction.work.bytes += 2 * bytes(data.d_in);  // of both products
    contribute(op.in, data.d_in);
  }

  // Statistics of the norm after a convolution whose output is not stored.
  void statistics_of_product(std::size_t i, const BatchNormMoments& moments) {
    const std::size_t product = fused(i).conv;
    const Conv& conv = std::get<Conv>(graph_.ops[product]);
    const std::int64_t inputs = shape(conv.in).c, outputs = shape(conv.out).c;
    const DType dtype = lowering_.op_types[product];
    Saved& saved = saved_[product];
    saved.scaled = add_saved(conv.name + ".scaled", dtype, {outputs, inputs});
    saved.scaled_transposed = add_saved(conv.name + ".scaled_transposed", dtype, {inputs, outputs});
    saved.deviations = add_saved(conv.name + ".deviations", DType::f32, {outputs, inputs});
    add(norm_at(i).name + ".statistics",
        ProductNormStatistics{.products = saved.products,
                              .sums = saved.channel_sums,
                              .weight = master(conv.weight),
                              .moments = moments,
                              .scaled = saved.scaled,
                              .scaled_transposed = saved.scaled_transposed,
                              .deviations = saved.deviations},
        Phase::forward, i)
        .work.macs = static_cast<double>(inputs * inputs * outputs);
  }

  void end_with_product(std::size_t i, const BatchNorm& op) {
    const std::size_t product = fused(i).conv;
    const Conv& conv = std::get<Conv>(graph_.ops[product]);
    Saved& saved = saved_[i];
    saved.relu_mask = add_saved(op.name + ".mask", DType::u8, {(shape(op.in).elements() + 7) / 8});
    BlockEndForward end{.in = value(conv.in),
                        .scaled_transposed = saved_[product].scaled_transposed,
                        .scale_shift = saved.scale_shift,
                        .out = value(op.out),
                        .relu_mask = *saved.relu_mask,
                        .by_products = std::get<UnstoredConv>(layers_[product]).by_products};
    std::int64_t inputs = shape(conv.in).c;
    const auto shortcut = fused(i).shortcut;
    if (shortcut) end.residual_scale_shift = saved_[*shortcut].scale_shift;
    if (shortcut && fused(*shortcut).is_by_product()) {
      const std::size_t other = fused(*shortcut).conv;
      end.shortcut_in = saved_[other].product_in;
      end.shortcut_scaled_transposed = saved_[other].scaled_transposed;
      inputs += shape(std::get<Conv>(graph_.ops[other]).in).c;
    } else {
      end.residual = value(shortcut ? norm_at(*shortcut).in : *op.residual);
    }
    Instruction& instruction = add(op.name + ".forward", end, Phase::forward, product);
    instruction.work.macs = static_cast<double>(shape(op.out).elements()) * static_cast<double>(inputs);
    if (end.by_products && shortcut)  // the shortcut goes through `out`
      instruction.work.bytes += 2 * bytes(end.out);
  }

  // For a block's end whose convolution's output is not stored: the gradient, masked and summed by a
  // convolution or here, goes to the product and to the shortcut.
  void backward(std::size_t i, const BatchNorm& op, const FusedNorm::ByProduct& by) {
    if (by.masks_gradient) mask_gradient(i, op);
    saved_[i].d_out = gradient_of(op.out);
    saved_[i].d_out_sums = gradient(op.bias);
    const auto norm = fused(i).shortcut;
    if (!norm || !std::holds_alternative<FusedNorm::ByEnd>(fused(*norm).backward))
      return share_with_residual(op, saved_[i].d_out);
    const BatchNorm& shortcut = norm_at(*norm);
    Saved& of_shortcut = saved_[*norm];
    if (!sums_for_shortcut(i)) {  // a product
      of_shortcut.d_out = saved_[i].d_out;
      of_shortcut.d_out_sums = saved_[i].d_out_sums;
      return;
    }
    saved_[i].d_out_sums = gradient(shortcut.bias);
    const BufferId d_in = new_gradient(shortcut.in, shortcut.name);
    add(shortcut.name + ".backward",
        BatchNormBackwardApply{.d_activated = saved_[i].d_out,
                               .in = value(shortcut.in),
                               .coefficients = of_shortcut.coefficients,
                               .d_in = d_in},
        Phase::backward, *norm);
    contribute(shortcut.in, d_in);
  }

  // Takes the gradient that the block's other reader left. That is also read by instructions before, so the
  // sum has a buffer of its own.
  ConvBackwardData data_gradient(const Conv& op, const FusedConv::CompletedGradient& completed,
                                 BufferId d_out, BufferId d_in) {
    const BufferId added = gradient_of(op.in);
    lowering_.gradients[op.in].clear();
    ConvBackwardData conv{.d_out = d_out,
                          .weight = lowering_.weights[op.weight],
                          .d_in = d_in,
                          .added = added,
                          .relu_mask = saved_[completed.end].relu_mask.value()};
    if (!completed.sums) return conv;
    const FusedNorm& end = fused(completed.end);
    if (end.is_by_product()) {
      if (sums_for_shortcut(completed.end))
        set_norm(conv, *end.shortcut);
      else
        conv.d_bias = gradient(norm_at(completed.end).bias);
      return conv;
    }
    set_norm(conv, completed.end, end.shortcut ? 2 : 1);
    if (!end.shortcut) return conv;
    const BatchNorm& other = norm_at(*end.shortcut);
    const Saved& shortcut = saved_[*end.shortcut];
    conv.shortcut_in = value(other.in);
    conv.shortcut_mean = shortcut.mean;
    conv.shortcut_inv_std = shortcut.inv_std;
    conv.shortcut_scale = master(other.scale);
    conv.d_shortcut_scale = gradient(other.scale);
    conv.d_shortcut_bias = gradient(other.bias);
    return conv;
  }

  const FusedNorm& fused(std::size_t norm) const { return std::get<FusedNorm>(layers_[norm]); }
  const BatchNorm& norm_at(std::size_t i) const { return std::get<BatchNorm>(graph_.ops[i]); }

  BufferId add_coefficients(const BatchNorm& norm, std::int64_t norms) {
    return add_saved(norm.name + ".coefficients", DType::f32, {3 * norms, shape(norm.in).c});
  }

  // The gradient of the norm's output is also the residual's. Without ReLU, or masked, it is the same buffer,
  // read after this norm only if it was shared before.
  void share_with_residual(const BatchNorm& op, BufferId d_out) {
    const std::vector<Lowering::Contribution>& parts = lowering_.gradients[op.out];
    contribute(*op.residual, d_out, parts.front().shared);
  }

  std::vector<LayerFusion> layers_;
  BufferId counters_ = add_norm_counters(lowering_.program, graph_, layers_);  // shared by all norms

 private:
  // The input of a shortcut's convolution, and its sums.
  void sample_pixels(std::size_t i, const Conv& op) {
    Saved& saved = saved_[i];
    saved.channel_sums = add_saved(op.name + ".channel_sums", DType::f32, {shape(op.in).c});
    SamplePixels sample{.in = value(op.in), .sums = saved.channel_sums, .counters = counters_};
    if (op.stride > 1 || lowering_.program.allow_tf32)
      sample.out = saved.product_in =
          add_saved(op.name + ".in", lowering_.op_types[i], nchw(sampled_shape(op)));
    Instruction& instruction = add(op.name + ".sample", sample, Phase::forward, i);
    instruction.work.macs = 0;
    if (sample.out) instruction.work.bytes += bytes(*sample.out) - bytes(sample.in);  // reads these pixels
  }

  // The shape of the pixels that a 1x1 convolution reads.
  Shape sampled_shape(const Conv& op) const {
    Shape sampled = shape(op.out);
    sampled.c = shape(op.in).c;
    return sampled;
  }

  // Adds left^T in, for a convolution whose output is not stored.
  BufferId multiply_channels(std::size_t i, const Conv& op, BufferId left, std::string name) {
    const BufferId right = saved_[i].product_in;
    const std::int64_t rows = lowering_.program.buffers[left].dims.at(1), columns = shape(op.in).c;
    const BufferId products = add_saved(name, DType::f32, {rows, columns});
    Instruction& instruction =
        add(std::move(name), ChannelProducts{.left = left, .right = right, .products = products},
            left == right ? Phase::forward : Phase::backward, i);
    set_macs(instruction, op, rows);
    if (left == right) instruction.work.bytes -= bytes(left);  // both operands are one tensor
    return products;
  }

  // Products of `rows` channels with the convolution's input.
  void set_macs(Instruction& instruction, const Conv& op, std::int64_t rows) const {
    instruction.work.macs = static_cast<double>(sampled_shape(op).elements()) * static_cast<double>(rows);
  }

  // By an instruction of its own. Of two gradients the smaller one has every second pixel.
  void mask_gradient(std::size_t i, const BatchNorm& op) {
    std::vector<BufferId> d_out = gradients_of(op.out, 2);
    std::ranges::sort(d_out, std::greater<>(), [&](BufferId part) { return bytes(part); });
    MaskedGradient gradient{.d_out = d_out.front(),
                            .relu_mask = saved_[i].relu_mask.value(),
                            .d_in = new_gradient(op.out, op.name),
                            .sums = this->gradient(op.bias),
                            .counters = counters_};
    if (d_out.size() > 1) gradient.second_d_out = d_out.back();
    lowering_.gradients[op.out].clear();
    contribute(op.out, gradient.d_in);
    add(op.name + ".mask_gradient", gradient, Phase::backward, i);
  }

  // Whether the gradient of this block's output is summed for its shortcut's norm alone: the last norm's
  // backward is a product's.
  bool sums_for_shortcut(std::size_t end) const {
    const FusedNorm& norm = fused(end);
    return norm.is_by_product() && !norm.masks_gradient() && norm.shortcut &&
           !fused(*norm.shortcut).is_by_product();
  }

  // The instruction may sum a gradient for a norm, and does for norm i. Its coefficients have room for so
  // many norms'.
  void set_norm(auto& instruction, std::size_t i, std::int64_t norms = 1) {
    const BatchNorm& norm = norm_at(i);
    Saved& saved = saved_[i];
    instruction.norm_in = value(norm.in);
    instruction.mean = saved.mean;
    instruction.inv_std = saved.inv_std;
    instruction.scale = master(norm.scale);
    instruction.d_scale = gradient(norm.scale);
    instruction.d_bias = gradient(norm.bias);
    instruction.coefficients = saved.coefficients = add_coefficients(norm, norms);
  }
};

}  // namespace plumb::cuda
