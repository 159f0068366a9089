// The instructions of block ends without the output of their convolution
// (kernels/program/instructions/block_end.h).
#include "kernels/cuda/block_end.h"

#include "kernels/cuda/binding.h"
#include "kernels/cuda/block_end_products.h"

namespace plumb::cuda {
namespace {

std::int64_t pixels_of(const Shape& shape) {
  return shape.n * shape.h * shape.w;
}

bool suits_kernel(const Program& program, const BlockEndForward& end) {
  const std::vector<std::int64_t>& dims = program.buffers[end.scaled_transposed].dims;
  return !end.by_products && end.residual && !end.residual_scale_shift && dims.at(0) == kWideChannels &&
         dims.at(1) % kWideChannels == 0;
}
bool suits_kernel(const Program& program, const BlockEndBackwardData& end) {
  return !end.by_products && program.buffers[end.scaled].dims.at(1) == kWideChannels;
}
bool suits_kernel(const Program&, const auto&) {
  return false;
}

// Whether the kernel that tuning has named runs the block's end.
bool by_warpgroups(const Context& context, Instruction& instruction) {
  const bool is_named = instruction.engine == kOwnWarpgroupKernel;
  instruction.engine = kOwnKernel;
  if (!is_named || !suits_warpgroups(context, context.program, instruction)) return false;
  instruction.engine = kOwnWarpgroupKernel;
  return true;
}

}  // namespace

bool suits_warpgroups(const Engines& device, const Program& program, const Instruction& instruction) {
  return device.warpgroup_multiprocessors > 0 &&
         std::visit([&](const auto& operation) { return suits_kernel(program, operation); },
                    instruction.operation);
}

ProductNormShape product_shape(const Context& context, const Instruction& instruction) {
  const Conv& conv = context.op<Conv>(instruction);
  const Shape &in = context.graph.values[conv.in].shape, &out = context.graph.values[conv.out].shape;
  return {.pixels = pixels_of(out), .inputs = static_cast<int>(in.c), .outputs = static_cast<int>(out.c)};
}

Binder prepare(Context& context, Instruction& instruction, const SamplePixels& sample) {
  const Conv& conv = context.op<Conv>(instruction);
  const Shape &in = context.graph.values[conv.in].shape, &out = context.graph.values[conv.out].shape;
  const NormPartition partition = partition_norm(pixels_of(out), in.c);
  instruction.workspace_bytes = norm_partials_bytes(partition, 1);
  const DType dtype = context.dtype(sample.in);
  return launching(context, [=, stride = conv.stride, tf32 = context.is_tf32(dtype)](const Arena& arena,
                                                                                     cudaStream_t stream) {
    launch_sample_pixels(partition, dtype,
                         {.in = arena.data(sample.in),
                          .out = arena.optional(sample.out),
                          .sums = arena.as<float>(sample.sums),
                          .grid = {static_cast<int>(in.h), static_cast<int>(in.w), stride - 1},
                          .scratch = {arena.workspace<float>(), arena.as<unsigned>(sample.counters)},
                          .tf32 = tf32},
                         stream);
  });
}

Binder prepare(Context& context, Instruction& instruction, const ChannelProducts& products) {
  const std::vector<std::int64_t>& dims = context.buffer(products.products).dims;
  const GemmProblem problem{.m = dims.at(0),
                            .n = dims.at(1),
                            .k = product_shape(context, instruction).pixels,
                            .transpose_a = true,
                            .in = context.dtype(products.left),
                            .out = DType::f32};
  return launching(context, [=, plan = plan_product(context, instruction, problem)](const Arena& arena,
                                                                                    cudaStream_t stream) {
    plan->run(
        stream,
        {.a = arena.data(products.left), .b = arena.data(products.right), .c = arena.data(products.products)},
        arena.workspace());
  });
}

Binder prepare(Context& context, Instruction& instruction, const ProductNormStatistics& norm) {
  const std::vector<std::int64_t>& dims = context.buffer(norm.deviations).dims;
  const BatchNorm& op = context.op<BatchNorm>(instruction);
  const ProductNormShape shape{.pixels = pixels_of(context.graph.values[op.in].shape),
                               .inputs = static_cast<int>(dims.at(1)),
                               .outputs = static_cast<int>(dims.at(0))};
  const DType dtype = context.dtype(norm.scaled);
  return launching(context, [=, tf32 = context.is_tf32(dtype)](const Arena& arena, cudaStream_t stream) {
    launch_product_norm_statistics(shape, dtype,
                                   {.products = arena.as<float>(norm.products),
                                    .sums = arena.as<float>(norm.sums),
                                    .weight = arena.as<float>(norm.weight),
                                    .scaled = arena.data(norm.scaled),
                                    .scaled_transposed = arena.data(norm.scaled_transposed),
                                    .deviations = arena.as<float>(norm.deviations),
                                    .tf32 = tf32},
                                   statistics_of(norm.moments, DType::f32, op, arena), stream);
  });
}

Binder prepare(Context& context, Instruction& instruction, const BlockEndForward& end) {
  if (end.by_products) return prepare_products(context, instruction, end);
  const ProductNormShape product = product_shape(context, instruction);
  const BlockEndShape shape{
      .pixels = product.pixels,
      .channels = product.outputs,
      .outputs = product.inputs,
      .second_outputs = end.shortcut_in ? static_cast<int>(context.buffer(*end.shortcut_in).dims.at(1)) : 0};
  const int walks_on = by_warpgroups(context, instruction) ? context.warpgroup_multiprocessors : 0;
  return launching(context, [=, dtype = context.dtype(end.in)](const Arena& arena, cudaStream_t stream) {
    const BlockEndOutput operands{.in = arena.data(end.in),
                                  .weight = arena.data(end.scaled_transposed),
                                  .scale_shift = arena.as<float>(end.scale_shift),
                                  .residual = arena.optional(end.residual),
                                  .residual_scale_shift = arena.optional<float>(end.residual_scale_shift),
                                  .shortcut_in = arena.optional(end.shortcut_in),
                                  .shortcut_weight = arena.optional(end.shortcut_scaled_transposed),
                                  .out = arena.data(end.out),
                                  .mask = arena.as<std::uint8_t>(end.relu_mask)};
    if (walks_on > 0)
      launch_block_end_walk(dtype, shape, walks_on, operands, stream);
    else
      launch_block_end_forward(dtype, shape, operands, stream);
  });
}

Binder prepare(Context& context, Instruction& instruction, const MaskedGradient& gradient) {
  const std::vector<std::int64_t>& dims = context.buffer(gradient.d_out).dims;  // n, c, h, w
  const NormPartition partition = partition_norm(dims.at(0) * dims.at(2) * dims.at(3), dims.at(1));
  instruction.workspace_bytes = norm_partials_bytes(partition, 1);
  const bool is_sampled = gradient.second_d_out && context.buffer(*gradient.second_d_out).dims != dims;
  const PixelGrid grid{static_cast<int>(dims.at(2)), static_cast<int>(dims.at(3)), is_sampled ? 1 : 0};
  const DType dtype = context.dtype(gradient.d_out);
  return launching(context, [=, tf32 = context.is_tf32(dtype)](const Arena& arena, cudaStream_t stream) {
    launch_masked_gradient(partition, dtype,
                           {.d_out = arena.data(gradient.d_out),
                            .second_d_out = arena.optional(gradient.second_d_out),
                            .grid = grid,
                            .mask = arena.as<std::uint8_t>(gradient.relu_mask),
                            .d_in = arena.data(gradient.d_in),
                            .sums = arena.as<float>(gradient.sums),
                            .scratch = {arena.workspace<float>(), arena.as<unsigned>(gradient.counters)},
                            .tf32 = tf32},
                           stream);
  });
}

Binder prepare(Context& context, Instruction& instruction, const ProductNormBackward& norm) {
  const ProductNormShape shape = product_shape(context, instruction);
  instruction.workspace_bytes = product_norm_workspace(shape);
  return launching(
      context,
      [=, dtype = context.dtype(norm.factors), d_weight_dtype = context.dtype(norm.d_weight),
       tf32 = context.is_tf32(context.dtype(norm.factors))](const Arena& arena, cudaStream_t stream) {
        launch_product_norm_backward(shape, dtype,
                                     {.products = arena.as<float>(norm.products),
                                      .d_out_sums = arena.as<float>(norm.d_out_sums),
                                      .sums = arena.as<float>(norm.sums),
                                      .deviations = arena.as<float>(norm.deviations),
                                      .weight = arena.as<float>(norm.weight),
                                      .scale = arena.as<float>(norm.scale),
                                      .inv_std = arena.as<float>(norm.inv_std),
                                      .d_weight = arena.data(norm.d_weight),
                                      .d_weight_dtype = d_weight_dtype,
                                      .d_scale = arena.as<float>(norm.d_scale),
                                      .d_bias = arena.optional<float>(norm.d_bias),
                                      .factors = arena.data(norm.factors),
                                      .tf32 = tf32,
                                      .shift = arena.as<float>(norm.shift),
                                      .workspace = arena.workspace<float>()},
                                     stream);
      });
}

Binder prepare(Context& context, Instruction& instruction, const BlockEndBackwardData& end) {
  if (end.by_products) return prepare_products(context, instruction, end);
  const ProductNormShape product = product_shape(context, instruction);
  const BlockEndShape shape{.pixels = product.pixels,
                            .channels = product.inputs,
                            .outputs = product.outputs,
                            .second_outputs = product.inputs};
  if (end.norm_in) instruction.workspace_bytes = block_end_workspace(shape, 2);
  const auto launch =
      by_warpgroups(context, instruction) ? launch_wide_block_end_through : launch_block_end_through;
  return launching(context, [=, dtype = context.dtype(end.in)](const Arena& arena, cudaStream_t stream) {
    launch(dtype, shape,
           {.d_out = arena.data(end.d_out),
            .weight = arena.data(end.scaled),
            .in = arena.data(end.in),
            .factors = arena.data(end.factors),
            .shift = arena.as<float>(end.shift),
            .scale_shift = arena.optional<float>(end.scale_shift),
            .norm_in = arena.optional(end.norm_in),
            .d_in = arena.data(end.d_in),
            .norm = {.scale = arena.optional<float>(end.scale),
                     .mean = arena.optional<float>(end.mean),
                     .inv_std = arena.optional<float>(end.inv_std),
                     .d_scale = arena.optional<float>(end.d_scale),
                     .d_bias = arena.optional<float>(end.d_bias),
                     .coefficients = arena.optional<float>(end.coefficients)},
            .partials = arena.workspace<float>()},
           stream);
  });
}

}  // namespace plumb::cuda
