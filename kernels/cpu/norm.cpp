// Batch norm with residual and activation, by our own loops: oneDNN's batch norm supports neither a residual
// nor PReLU.
#include "kernels/cpu/binding.h"
#include "kernels/cpu/norm_loops.h"
#include "kernels/cpu/threads.h"

namespace plumb::cpu {
namespace {

struct Form {
  dnnl::memory::desc layout;  // of all tensors with the input's dims
  NormTiling tiling;
  double elements = 0;  // per channel
};

// The input's layout, or row-major if our loops don't support that layout.
Form form_of(Context& context, BufferId in, const BatchNorm& op) {
  const Shape& shape = context.graph.values[op.in].shape;
  const dnnl::memory::desc plain = plain_layout(nchw(shape));
  const dnnl::memory::desc held = context.settle(in, plain);
  const auto elements = static_cast<double>(shape.n * shape.h * shape.w);
  if (const auto layout = channel_layout(held))
    if (const auto tiling = norm_tiling(*layout)) return {held, *tiling, elements};
  return {plain, *norm_tiling(*channel_layout(plain)), elements};
}

dnnl::memory::desc sums_layout(std::size_t sums) {
  return plain_layout({static_cast<std::int64_t>(sums * sizeof(LaneSums) / sizeof(float))});
}

const BatchNorm& norm_of(const Context& context, const Instruction& instruction) {
  return std::get<BatchNorm>(context.graph.ops[instruction.op]);
}

// Empty without a PReLU.
dnnl::memory::desc slope_layout(const Context& context, const BatchNorm& op) {
  return op.slope ? plain_layout(context.graph.parameters[*op.slope].dims) : dnnl::memory::desc();
}
bool has_one_slope(const Context& context, const BatchNorm& op) {
  return op.slope && context.graph.parameters[*op.slope].elements() == 1;
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const BatchNormForward& norm) {
  const BatchNorm& op = norm_of(context, instruction);
  const Form form = form_of(context, norm.in, op);
  const dnnl::memory::desc channels = plain_layout({context.graph.values[op.in].shape.c});
  NormForward at{.tiling = form.tiling,
                 .activation = op.activation,
                 .order = norm_order(form.tiling, norm.residual ? 3 : 2, threads_in_use()),
                 .one_slope = has_one_slope(context, op),
                 .epsilon = op.epsilon,
                 .momentum = op.momentum,
                 .elements = form.elements};
  Call call(context, instruction);
  const auto in = call.input(norm.in, form.layout);
  const auto scale = call.input(norm.scale, channels), bias = call.input(norm.bias, channels);
  const auto running_mean = call.updated(norm.running_mean, channels);
  const auto running_variance = call.updated(norm.running_variance, channels);
  const auto out = call.output(norm.out, form.layout);
  const auto mean = call.output(norm.mean, channels), inv_std = call.output(norm.inv_std, channels);
  const auto residual = call.input(norm.residual, form.layout);
  const auto slope = call.input(norm.slope, slope_layout(context, op));
  const auto sums = call.scratchpad(sums_layout(norm_forward_sums(form.tiling)));
  return call.finish(Call::Body([=](const Addresses& addresses) mutable -> ComputeFn {
    at.in = addresses.as(in);
    at.scale = addresses.as(scale);
    at.bias = addresses.as(bias);
    at.running_mean = addresses.as(running_mean);
    at.running_variance = addresses.as(running_variance);
    at.out = addresses.as(out);
    at.mean = addresses.as(mean);
    at.inverse_deviation = addresses.as(inv_std);
    at.residual = addresses.as(residual);
    at.slope = addresses.as(slope);
    at.sums = addresses.as<LaneSums>(sums);
    return [at] { norm_forward(at); };
  }));
}

Binder prepare(Context& context, Instruction& instruction, const BatchNormBackward& norm) {
  const BatchNorm& op = norm_of(context, instruction);
  const Form form = form_of(context, norm.in, op);
  const dnnl::memory::desc channels = plain_layout({context.graph.values[op.in].shape.c});
  const int tensors = 3 + norm.out.has_value() + norm.second_d_out.has_value() + norm.d_residual.has_value();
  NormBackward at{.tiling = form.tiling,
                  .activation = op.activation,
                  .order = norm_order(form.tiling, tensors, threads_in_use()),
                  .one_slope = has_one_slope(context, op),
                  .elements = form.elements};
  Call call(context, instruction);
  const auto in = call.input(norm.in, form.layout), d_out = call.input(norm.d_out, form.layout);
  const auto scale = call.input(norm.scale, channels), bias = call.input(norm.bias, channels);
  const auto mean = call.input(norm.mean, channels), inv_std = call.input(norm.inv_std, channels);
  const auto d_in = call.output(Write(norm.d_in), form.layout);
  const auto d_scale = call.output(norm.d_scale, channels), d_bias = call.output(norm.d_bias, channels);
  const auto out = call.input(norm.out, form.layout);
  const auto second = call.input(norm.second_d_out, form.layout);
  const auto d_residual = call.output(norm.d_residual, form.layout);
  const auto slope = call.input(norm.slope, slope_layout(context, op));
  const auto d_slope = call.output(norm.d_slope, slope_layout(context, op));
  const auto sums = call.scratchpad(sums_layout(norm_backward_sums(form.tiling)));
  return call.finish(Call::Body([=](const Addresses& addresses) mutable -> ComputeFn {
    at.in = addresses.as(in);
    at.d_out = addresses.as(d_out);
    at.scale = addresses.as(scale);
    at.bias = addresses.as(bias);
    at.mean = addresses.as(mean);
    at.inverse_deviation = addresses.as(inv_std);
    at.d_in = addresses.as(d_in);
    at.d_scale = addresses.as(d_scale);
    at.d_bias = addresses.as(d_bias);
    at.out = addresses.as(out);
    at.d_second = addresses.as(second);
    at.d_residual = addresses.as(d_residual);
    at.slope = addresses.as(slope);
    at.d_slope = addresses.as(d_slope);
    at.sums = addresses.as<LaneSums>(sums);
    return [at] { norm_backward(at); };
  }));
}

}  // namespace plumb::cpu
