// Batch norm with residual and activation, by our own loops: oneDNN's batch norm supports neither a residual
// nor PReLU.
#include <set>

#include "kernels/cpu/binding.h"
#include "kernels/cpu/norm_loops.h"
#include "kernels/cpu/threads.h"

namespace plumb::cpu {
namespace {

// Constants: the tiling, and so the order of sums, may depend on the shape only.
constexpr std::int64_t kWantedItems = 512;  // work for many threads
constexpr std::int64_t kLeastRows = 128;    // per slice: 8 KiB, large compared with its sums

constexpr std::size_t kCoresCacheBytes = 512 * 1024;         // L2 caches have at least this size
constexpr std::size_t kSharedCacheBytes = 16 * 1024 * 1024;  // half of the L3 cache of a Zen 4 CCD

// Keeps the tensors of both passes, `bytes_per_element` in all, in a core's cache between passes, or in
// the shared cache if a group is too large for that.
NormOrder norm_order(const NormTiling& tiling, std::size_t bytes_per_element, int threads) {
  const std::size_t bytes =
      bytes_per_element * static_cast<std::size_t>(tiling.images * tiling.rows * kLanes);
  const bool is_even = tiling.groups % threads == 0 || tiling.groups >= 8 * threads;
  const auto fit = static_cast<std::int64_t>(kSharedCacheBytes / bytes);
  return {.group_by_group = is_even && bytes <= kCoresCacheBytes,
          .groups_at_once = std::clamp<std::int64_t>(fit, 1, tiling.groups)};
}

struct Prepared {
  dnnl::memory::desc layout;  // of all tensors with the input's dims
  NormForm form;
};

// The input's layout, or row-major if our loops don't support that layout. `tensors`: those with the input's
// dims that the loops go through.
Prepared prepare_form(Context& context, BufferId in, const BatchNorm& op, std::size_t tensors) {
  const Shape& shape = context.graph.values[op.in].shape;
  const DType dtype = context.dtype(in);
  dnnl::memory::desc layout = plain_layout(nchw(shape), dtype);
  std::optional<NormTiling> tiling = norm_tiling(*channel_layout(layout));
  const dnnl::memory::desc held = context.settle(in, layout);
  if (const auto channels = channel_layout(held))
    if (const auto of_held = norm_tiling(*channels)) tiling = of_held, layout = held;
  return {.layout = layout,
          .form = {.tiling = *tiling,
                   .activation = op.activation,
                   .order = norm_order(*tiling, tensors * bytes_of(dtype), threads_in_use()),
                   .one_slope = op.slope && context.graph.parameters[*op.slope].elements() == 1,
                   .elements = static_cast<double>(shape.n * shape.h * shape.w)}};
}

// `sums`: per group and slice.
dnnl::memory::desc sums_layout(const NormTiling& tiling, std::int64_t sums) {
  constexpr std::int64_t kFloats = sizeof(LaneSums) / sizeof(float);
  return plain_layout({tiling.groups * tiling.slices * sums * kFloats});
}

// Empty without a PReLU.
dnnl::memory::desc slope_layout(const Context& context, const BatchNorm& op) {
  return op.slope ? plain_layout(context.graph.parameters[*op.slope].dims) : dnnl::memory::desc();
}

}  // namespace

std::optional<NormTiling> norm_tiling(const ChannelLayout& layout) {
  NormTiling tiling{.channels = layout.channels, .images = layout.images};
  std::int64_t pixels = layout.pixels;
  if (layout.blocks() == 1) {  // images are contiguous, like more pixels
    pixels *= tiling.images;
    tiling.images = 1;
  }
  tiling.image_stride = layout.image_stride();
  if (kLanes % layout.block == 0) {
    const std::int64_t run = pixels * layout.block;
    tiling.groups = layout.blocks();
    tiling.period = static_cast<int>(layout.block);
    tiling.rows = (run + kLanes - 1) / kLanes;
    tiling.tail = static_cast<int>(run % kLanes);
    tiling.group_stride = run;
  } else if (layout.block == layout.channels) {
    tiling.groups = (layout.channels + kLanes - 1) / kLanes;
    tiling.rows = pixels;
    tiling.row_stride = layout.channels;
    tiling.group_stride = kLanes;
  } else {
    return std::nullopt;
  }
  const std::int64_t enough = (kWantedItems + tiling.groups - 1) / tiling.groups;
  tiling.slices = std::clamp<std::int64_t>(tiling.images * tiling.rows / kLeastRows, 1,
                                           std::max<std::int64_t>(1, enough));
  return tiling;
}

Binder prepare(Context& context, Instruction& instruction, const BatchNormForward& norm) {
  const BatchNorm& op = context.op<BatchNorm>(instruction);
  const auto [layout, form] = prepare_form(context, norm.in, op, norm.residual ? 3 : 2);
  const dnnl::memory::desc channels = plain_layout({context.graph.values[op.in].shape.c});
  Call call(context, instruction);
  const auto in = call.input(norm.in, layout);
  const auto scale = call.input(norm.scale, channels), bias = call.input(norm.bias, channels);
  const auto running_mean = call.updated(norm.running_mean, channels);
  const auto running_variance = call.updated(norm.running_variance, channels);
  const auto out = call.output(norm.out, layout);
  const auto mean = call.output(norm.mean, channels), inv_std = call.output(norm.inv_std, channels);
  const auto residual = call.input(norm.residual, layout);
  const auto slope = call.input(norm.slope, slope_layout(context, op));
  const auto sums = call.scratchpad(sums_layout(form.tiling, kForwardSums));
  return with_type_of(context.dtype(norm.in), [&]<typename T>(T) {
    return call.finish(
        [=, form = form, epsilon = op.epsilon, momentum = op.momentum](const BoundOperands& at) {
          norm_forward<T>({.form = form,
                           .epsilon = epsilon,
                           .momentum = momentum,
                           .in = at.as<T>(in),
                           .scale = at.as(scale),
                           .bias = at.as(bias),
                           .residual = at.as<T>(residual),
                           .slope = at.as(slope),
                           .running_mean = at.as(running_mean),
                           .running_variance = at.as(running_variance),
                           .out = at.as<T>(out),
                           .mean = at.as(mean),
                           .inv_std = at.as(inv_std),
                           .sums = at.as<LaneSums>(sums)});
        });
  });
}

Binder prepare(Context& context, Instruction& instruction, const BatchNormBackward& norm) {
  const BatchNorm& op = context.op<BatchNorm>(instruction);
  std::set<BufferId> tensors{norm.in, norm.d_out, norm.d_in};  // gradients may be overwritten
  if (norm.out) tensors.insert(*norm.out);
  if (norm.second_d_out) tensors.insert(*norm.second_d_out);
  if (norm.d_residual) tensors.insert(*norm.d_residual);
  const auto [layout, form] = prepare_form(context, norm.in, op, tensors.size());
  const dnnl::memory::desc channels = plain_layout({context.graph.values[op.in].shape.c});
  Call call(context, instruction);
  const auto in = call.input(norm.in, layout), d_out = call.input(norm.d_out, layout);
  const auto scale = call.input(norm.scale, channels), bias = call.input(norm.bias, channels);
  const auto mean = call.input(norm.mean, channels), inv_std = call.input(norm.inv_std, channels);
  const auto d_in = call.output(Write(norm.d_in), layout);
  const auto d_scale = call.output(norm.d_scale, channels), d_bias = call.output(norm.d_bias, channels);
  const auto out = call.input(norm.out, layout), d_second = call.input(norm.second_d_out, layout);
  const auto d_residual = call.output(norm.d_residual, layout);
  const auto slope = call.input(norm.slope, slope_layout(context, op));
  const auto d_slope = call.output(norm.d_slope, slope_layout(context, op));
  const auto sums = call.scratchpad(sums_layout(form.tiling, kBackwardSums));
  return with_type_of(context.dtype(norm.in), [&]<typename T>(T) {
    return call.finish([=, form = form](const BoundOperands& at) {
      norm_backward<T>({.form = form,
                        .in = at.as<T>(in),
                        .d_out = at.as<T>(d_out),
                        .scale = at.as(scale),
                        .bias = at.as(bias),
                        .mean = at.as(mean),
                        .inv_std = at.as(inv_std),
                        .out = at.as<T>(out),
                        .d_second = at.as<T>(d_second),
                        .slope = at.as(slope),
                        .d_in = at.as<T>(d_in),
                        .d_scale = at.as(d_scale),
                        .d_bias = at.as(d_bias),
                        .d_residual = at.as<T>(d_residual),
                        .d_slope = at.as(d_slope),
                        .sums = at.as<LaneSums>(sums)});
    });
  });
}

}  // namespace plumb::cpu
