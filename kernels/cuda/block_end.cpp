// The instructions of block ends without the output of their convolution
// (kernels/program/instructions/block_end.h).
#include "kernels/cuda/own/block_end.h"

#include <memory>
#include <vector>

#include "kernels/cuda/binding.h"
#include "kernels/cuda/plan/storage.h"
#include "kernels/cuda/runtime/runtime.h"

namespace plumb::cuda {
namespace {

std::int64_t pixels_of(const Shape& shape) {
  return shape.n * shape.h * shape.w;
}

// The convolution as a product.
ProductNormShape product_shape(const Context& context, const Instruction& instruction) {
  const Conv& conv = context.op<Conv>(instruction);
  const Shape &in = context.graph.values[conv.in].shape, &out = context.graph.values[conv.out].shape;
  return {.pixels = pixels_of(out), .inputs = static_cast<int>(in.c), .outputs = static_cast<int>(out.c)};
}

// Block ends without x (kernels/program/instructions/block_end.h) by a library's products, where our own
// kernels don't run: in f32, and in f16 below compute capability 8.0. Forward is a product with bias, ReLU
// and mask in its epilogue, which adds the shortcut; a stored shortcut's norm is applied first, a shortcut's
// product added first. Backward is two products into one tensor. Biases have the output's dtype: in f16
// shifts are rounded.
// The workspace of halves begins with a product's bias, rounded, then a zero.
constexpr std::size_t kZeroBytes = 256;  // what follows is aligned

// Throw Error(internal) if the library has no algorithm for a product.
Binder prepare_products(Context& context, Instruction& instruction, const BlockEndForward& end) {
  const ProductNormShape shape = product_shape(context, instruction);
  const DType dtype = context.dtype(end.out);
  std::vector<GemmProblem> problems{{.m = shape.pixels,
                                     .n = shape.outputs,
                                     .k = shape.inputs,
                                     .in = dtype,
                                     .out = dtype,
                                     .bias = true,
                                     .adds = true,
                                     .makes_mask = true}};
  if (end.shortcut_in)
    problems.push_back({.m = shape.pixels,
                        .n = shape.outputs,
                        .k = context.buffer(*end.shortcut_in).dims.at(1),
                        .in = dtype,
                        .out = dtype,
                        .bias = true});
  const RoundedOperand bias{dtype, shape.outputs};
  return launching(context, [=, plans = plan_products(context, instruction, problems, bias.bytes)](
                                const Arena& arena, cudaStream_t stream) {
    std::byte *const workspace = arena.workspace(), *const out = arena.data(end.out);
    const std::byte* added = arena.optional(end.residual);
    const auto* const line = arena.optional<float>(end.residual_scale_shift);
    const auto shift_of = [&](const float* scale_shift) {
      return bias.round(reinterpret_cast<const std::byte*>(scale_shift + shape.outputs), workspace, stream);
    };
    if (end.shortcut_in)
      plans[1].run(stream,
                   {.a = arena.data(*end.shortcut_in),
                    .b = arena.data(*end.shortcut_scaled_transposed),
                    .bias = shift_of(line),
                    .c = out},
                   workspace + bias.bytes);
    else if (line)
      launch_norm_apply(partition_norm(shape.pixels, shape.outputs), dtype,
                        {.in = added, .scale_shift = line, .out = out}, stream);
    plans[0].run(stream,
                 {.a = arena.data(end.in),
                  .b = arena.data(end.scaled_transposed),
                  .bias = shift_of(arena.as<float>(end.scale_shift)),
                  .added = line ? out : added,
                  .relu_mask = arena.data(end.relu_mask),
                  .c = out},
                 workspace + bias.bytes);
  });
}

// The product with the input comes first: it is the smaller one, and rounding it costs less.
Binder prepare_products(Context& context, Instruction& instruction, const BlockEndBackwardData& end) {
  const ProductNormShape shape = product_shape(context, instruction);
  const DType dtype = context.dtype(end.in);
  const bool is_half = dtype != DType::f32;  // then the factors are times a power of two
  const GemmProblem of_input{.m = shape.pixels,
                             .n = shape.inputs,
                             .k = shape.inputs,
                             .in = dtype,
                             .out = dtype,
                             .bias = true,
                             .has_factor = is_half};
  const GemmProblem of_gradient{
      .m = shape.pixels, .n = shape.inputs, .k = shape.outputs, .in = dtype, .out = dtype, .adds = true};
  const RoundedOperand bias{dtype, shape.inputs};
  const std::size_t zero_at = bias.bytes, reserved = is_half ? zero_at + kZeroBytes : 0;
  return launching(context, [=, plans = plan_products(context, instruction, {of_input, of_gradient},
                                                      reserved)](const Arena& arena, cudaStream_t stream) {
    std::byte *const workspace = arena.workspace(), *const d_in = arena.data(end.d_in);
    const auto* const shift = arena.as<float>(end.shift);
    if (is_half) check(cudaMemsetAsync(workspace + zero_at, 0, sizeof(float), stream));
    plans[0].run(stream,
                 {.a = arena.data(end.in),
                  .b = arena.data(end.factors),
                  .bias = bias.round(arena.data(end.shift), workspace, stream),
                  .factor = shift + shape.inputs,
                  .zero = reinterpret_cast<const float*>(workspace + zero_at),
                  .c = d_in},
                 workspace + reserved);
    plans[1].run(stream, {.a = arena.data(end.d_out), .b = arena.data(end.scaled), .added = d_in, .c = d_in},
                 workspace + reserved);
  });
}

}  // namespace

// The gradient of a block's end, which a convolution completes.
Binder prepare_block_end(Context& context, Instruction& instruction, const ConvBackwardData& conv) {
  const ProductNormShape product = product_shape(context, instruction);
  const std::vector<std::int64_t>&dims = context.buffer(conv.d_in).dims,
        &added_dims = context.buffer(*conv.added).dims;
  const BlockEndShape shape{
      .pixels = product.pixels,
      .channels = product.inputs,
      .outputs = product.outputs,
      .added_grid = {static_cast<int>(dims.at(2)), static_cast<int>(dims.at(3)), dims == added_dims ? 0 : 1}};
  instruction.workspace_bytes = block_end_workspace(
      shape, conv.d_bias.has_value() + conv.norm_in.has_value() + conv.shortcut_in.has_value());
  return launching(context, [=, dtype = context.dtype(conv.d_in)](const Arena& arena, cudaStream_t stream) {
    float* const coefficients = arena.optional<float>(conv.coefficients);
    launch_block_end(
        dtype, shape,
        {.left = arena.data(conv.d_out),
         .weight = arena.data(conv.weight),
         .added = arena.optional(conv.added),
         .mask = arena.optional(conv.relu_mask),
         .out = arena.data(conv.d_in),
         .norm_in = arena.optional(conv.norm_in),
         .shortcut_in = arena.optional(conv.shortcut_in),
         .partials = arena.workspace<float>()},
        backward_of(conv, arena, coefficients),
        {.scale = arena.optional<float>(conv.shortcut_scale),
         .mean = arena.optional<float>(conv.shortcut_mean),
         .inv_std = arena.optional<float>(conv.shortcut_inv_std),
         .d_scale = arena.optional<float>(conv.d_shortcut_scale),
         .d_bias = arena.optional<float>(conv.d_shortcut_bias),
         .coefficients = coefficients + 3 * std::ptrdiff_t{conv.shortcut_in ? shape.channels : 0}},
        stream);
  });
}

Binder prepare(Context& context, Instruction& instruction, const SamplePixels& sample) {
  const Conv& conv = context.op<Conv>(instruction);
  const Shape& in = context.graph.values[conv.in].shape;
  const NormPartition partition = norm_partition(context.graph, context.program, instruction);
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
  return bind_product(context, instruction, problem, products.left, products.right, products.products);
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
  return launching(context, [=, dtype = context.dtype(end.in)](const Arena& arena, cudaStream_t stream) {
    launch_block_end_forward(dtype, shape,
                             {.left = arena.data(end.in),
                              .weight = arena.data(end.scaled_transposed),
                              .second_left = arena.optional(end.shortcut_in),
                              .second_weight = arena.optional(end.shortcut_scaled_transposed),
                              .added = arena.optional(end.residual),
                              .scale_shift = arena.as<float>(end.scale_shift),
                              .added_scale_shift = arena.optional<float>(end.residual_scale_shift),
                              .made_mask = arena.as<std::uint8_t>(end.relu_mask),
                              .out = arena.data(end.out)},
                             stream);
  });
}

Binder prepare(Context& context, Instruction& instruction, const MaskedGradient& gradient) {
  const std::vector<std::int64_t>& dims = context.buffer(gradient.d_out).dims;  // n, c, h, w
  const NormPartition partition = norm_partition(context.graph, context.program, instruction);
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
  return launching(context, [=, dtype = context.dtype(end.in)](const Arena& arena, cudaStream_t stream) {
    launch_block_end_through(dtype, shape,
                             {.left = arena.data(end.d_out),
                              .weight = arena.data(end.scaled),
                              .second_left = arena.data(end.in),
                              .second_weight = arena.data(end.factors),
                              .scale_shift = arena.optional<float>(end.scale_shift),
                              .shift = arena.as<float>(end.shift),
                              .out = arena.data(end.d_in),
                              .norm_in = arena.optional(end.norm_in),
                              .partials = arena.workspace<float>()},
                             backward_of(end, arena, arena.optional<float>(end.coefficients)), stream);
  });
}

}  // namespace plumb::cuda
