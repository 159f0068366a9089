#include "kernels/cuda/plan/describe_block_end.h"

#include <algorithm>
#include <functional>

namespace plumb::cuda {

void BlockEndLowering::forward_of_product(std::size_t i, const Conv& op) {
  Saved& saved = saved_[i];
  saved.product_in = value(op.in);
  if (const auto front = layers_[i].norm_in_front)
    saved.channel_sums = saved_[*front].channel_sums;
  else
    sample_pixels(i, op);
  saved.products = multiply_channels(i, op, saved.product_in, op.name + ".in_products");
}

void BlockEndLowering::sample_pixels(std::size_t i, const Conv& op) {
  Saved& saved = saved_[i];
  saved.channel_sums = add_saved(op.name + ".channel_sums", DType::f32, {shape(op.in).c});
  SamplePixels sample{.in = value(op.in), .sums = saved.channel_sums, .counters = counters_};
  if (op.stride > 1 || lowering_.program.allow_tf32)
    sample.out = saved.product_in =
        add_saved(op.name + ".in", lowering_.op_types[i], nchw(sampled_shape(op)));
  Instruction& instruction = add(op.name + ".sample", sample, Phase::forward, i);
  instruction.work.macs = 0;
  if (sample.out) instruction.work.bytes += bytes(*sample.out) - bytes(sample.in);  // reads these pixels
  instruction.workspace_bytes = norm_partials_bytes(partition_norm(sampled_shape(op), layout()), 1);
}

Shape BlockEndLowering::sampled_shape(const Conv& op) const {
  Shape sampled = shape(op.out);
  sampled.c = shape(op.in).c;
  return sampled;
}

BufferId BlockEndLowering::multiply_channels(std::size_t i, const Conv& op, BufferId left, std::string name) {
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

void BlockEndLowering::set_macs(Instruction& instruction, const Conv& op, std::int64_t rows) const {
  instruction.work.macs = static_cast<double>(sampled_shape(op).elements()) * static_cast<double>(rows);
}

void BlockEndLowering::backward_of_product(std::size_t i, const Conv& op) {
  const std::size_t end = *layers_[i].norm_of_product;
  const BatchNorm& norm = std::get<BatchNorm>(graph_.ops[end]);
  const BufferId d_out = saved_[end].d_out, sums = saved_[end].d_out_sums;
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
                                 .inv_std = saved_[end].inv_std,
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
      .by_products = layers_[i].by_products};
  if (const auto front = layers_[i].norm_in_front; front && !data.by_products) {
    set_norm(data, *front);
    data.scale_shift = saved_[*front].scale_shift;
  }
  Instruction& instruction = add(op.name + ".backward_data", data, Phase::backward, i);
  set_macs(instruction, op, shape(op.out).c + inputs);
  if (data.by_products) instruction.work.bytes += 2 * bytes(data.d_in);  // of both products
  contribute(op.in, data.d_in);
}

bool BlockEndLowering::sums_for_shortcut(std::size_t end) const {
  const LayerFusion& layer = layers_[end];
  return layer.product && !layer.masks_gradient && layer.norm_in_front &&
         !layers_[*layer.norm_in_front].product;
}

ConvBackwardData BlockEndLowering::complete_gradient(const Conv& op, const LayerFusion& layer, BufferId d_out,
                                                     BufferId d_in) {
  const BufferId added = gradient_of(op.in);
  lowering_.gradients[op.in].clear();
  ConvBackwardData conv{.d_out = d_out,
                        .weight = lowering_.weights[op.weight],
                        .d_in = d_in,
                        .added = added,
                        .relu_mask = saved_[*layer.block_end].relu_mask.value()};
  if (!layer.sums_for_end) return conv;
  const LayerFusion& end = layers_[*layer.block_end];
  const bool is_for_shortcut = sums_for_shortcut(*layer.block_end);
  if (end.product && !is_for_shortcut) {
    conv.d_bias = gradient(std::get<BatchNorm>(graph_.ops[*layer.block_end]).bias);
    return conv;
  }
  const std::size_t summed = is_for_shortcut ? *end.norm_in_front : *layer.block_end;
  set_norm(conv, summed, end.norm_in_front && !end.product ? 2 : 1);
  if (!end.norm_in_front || end.product) return conv;
  const BatchNorm& other = norm_in_front(*layer.block_end);
  const Saved& shortcut = saved_[*end.norm_in_front];
  conv.shortcut_in = value(other.in);
  conv.shortcut_mean = shortcut.mean;
  conv.shortcut_inv_std = shortcut.inv_std;
  conv.shortcut_scale = master(other.scale);
  conv.d_shortcut_scale = gradient(other.scale);
  conv.d_shortcut_bias = gradient(other.bias);
  return conv;
}

void BlockEndLowering::set_norm(auto& instruction, std::size_t i, std::int64_t norms) {
  const BatchNorm& norm = std::get<BatchNorm>(graph_.ops[i]);
  Saved& saved = saved_[i];
  instruction.norm_in = value(norm.in);
  instruction.mean = saved.mean;
  instruction.inv_std = saved.inv_std;
  instruction.scale = master(norm.scale);
  instruction.d_scale = gradient(norm.scale);
  instruction.d_bias = gradient(norm.bias);
  instruction.coefficients = saved.coefficients = add_coefficients(norm, norms);
}

BufferId BlockEndLowering::add_coefficients(const BatchNorm& norm, std::int64_t norms) {
  return add_saved(norm.name + ".coefficients", DType::f32, {3 * norms, shape(norm.in).c});
}

void BlockEndLowering::end_with_product(std::size_t i, const BatchNorm& op) {
  const LayerFusion& layer = layers_[i];
  const std::size_t product = *layer.product;
  const Conv& conv = std::get<Conv>(graph_.ops[product]);
  Saved& saved = saved_[i];
  saved.relu_mask = add_saved(op.name + ".mask", DType::u8, {(shape(op.in).elements() + 7) / 8});
  BlockEndForward end{.in = value(conv.in),
                      .scaled_transposed = saved_[product].scaled_transposed,
                      .scale_shift = saved.scale_shift,
                      .out = value(op.out),
                      .relu_mask = *saved.relu_mask,
                      .by_products = layers_[product].by_products};
  std::int64_t inputs = shape(conv.in).c;
  if (!layer.norm_in_front) {
    end.residual = value(*op.residual);
  } else {
    end.residual_scale_shift = saved_[*layer.norm_in_front].scale_shift;
    if (const auto shortcut = layers_[*layer.norm_in_front].product) {
      end.shortcut_in = saved_[*shortcut].product_in;
      end.shortcut_scaled_transposed = saved_[*shortcut].scaled_transposed;
      inputs += shape(std::get<Conv>(graph_.ops[*shortcut]).in).c;
    } else {
      end.residual = value(norm_in_front(i).in);
    }
  }
  Instruction& instruction = add(op.name + ".forward", end, Phase::forward, product);
  instruction.work.macs = static_cast<double>(shape(op.out).elements()) * static_cast<double>(inputs);
  if (end.by_products && layer.norm_in_front)  // the shortcut goes through `out`
    instruction.work.bytes += 2 * bytes(end.out);
}

void BlockEndLowering::statistics_of_product(std::size_t i, const BatchNormMoments& moments) {
  const std::size_t product = *layers_[i].product;
  const Conv& conv = std::get<Conv>(graph_.ops[product]);
  const std::int64_t inputs = shape(conv.in).c, outputs = shape(conv.out).c;
  const DType dtype = lowering_.op_types[product];
  Saved& saved = saved_[product];
  saved.scaled = add_saved(conv.name + ".scaled", dtype, {outputs, inputs});
  saved.scaled_transposed = add_saved(conv.name + ".scaled_transposed", dtype, {inputs, outputs});
  saved.deviations = add_saved(conv.name + ".deviations", DType::f32, {outputs, inputs});
  add(std::get<BatchNorm>(graph_.ops[i]).name + ".statistics",
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

void BlockEndLowering::pass_on_gradient(std::size_t i, const BatchNorm& op) {
  if (layers_[i].masks_gradient) mask_gradient(i, op);
  saved_[i].d_out = gradient_of(op.out);
  saved_[i].d_out_sums = gradient(op.bias);
  const auto norm = layers_[i].norm_in_front;
  if (!norm || !layers_[*norm].backward_by_end) return share_with_residual(op, saved_[i].d_out);
  const BatchNorm& shortcut = norm_in_front(i);
  Saved& of_shortcut = saved_[*layers_[i].norm_in_front];
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
      Phase::backward, *layers_[i].norm_in_front);
  contribute(shortcut.in, d_in);
}

void BlockEndLowering::mask_gradient(std::size_t i, const BatchNorm& op) {
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
  add(op.name + ".mask_gradient", gradient, Phase::backward, i).workspace_bytes =
      norm_partials_bytes(partition_norm(shape(op.out), layout()), 1);
}

void BlockEndLowering::share_with_residual(const BatchNorm& op, BufferId d_out) {
  const std::vector<Lowering::Contribution>& parts = lowering_.gradients[op.out];
  contribute(*op.residual, d_out, parts.front().shared);
}

}  // namespace plumb::cuda
