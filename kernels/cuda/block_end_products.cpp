#include "kernels/cuda/block_end_products.h"

#include <memory>
#include <vector>

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/runtime.h"

namespace plumb::cuda {
namespace {

// The workspace of halves begins with a product's bias, rounded, then a zero.
std::size_t bias_bytes(DType dtype, std::int64_t channels) {
  if (dtype == DType::f32) return 0;
  return static_cast<std::size_t>(divide_up(channels, 128) * 128) * bytes_of(dtype);
}
constexpr std::size_t kZeroBytes = 256;  // what follows is aligned

// The bias as a product reads it.
const std::byte* round_bias(const float* bias, DType dtype, std::int64_t channels, std::byte* workspace,
                            cudaStream_t stream) {
  const auto* const data = reinterpret_cast<const std::byte*>(bias);
  if (dtype == DType::f32) return data;
  launch_cast(DType::f32, data, dtype, workspace, channels, 1, stream);
  return workspace;
}

}  // namespace

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
                                     .mask = ProductMask::makes}};
  if (end.shortcut_in)
    problems.push_back({.m = shape.pixels,
                        .n = shape.outputs,
                        .k = context.buffer(*end.shortcut_in).dims.at(1),
                        .in = dtype,
                        .out = dtype,
                        .bias = true});
  const std::size_t reserved = bias_bytes(dtype, shape.outputs);
  return launching(context, [=, plans = plan_products(context, instruction, problems, reserved)](
                                const Arena& arena, cudaStream_t stream) {
    std::byte *const workspace = arena.workspace(), *const out = arena.data(end.out);
    const std::byte* added = arena.optional(end.residual);
    const auto* const line = arena.optional<float>(end.residual_scale_shift);
    const auto shift_of = [&](const float* scale_shift) {
      return round_bias(scale_shift + shape.outputs, dtype, shape.outputs, workspace, stream);
    };
    if (end.shortcut_in)
      plans[1]->run(stream,
                    {.a = arena.data(*end.shortcut_in),
                     .b = arena.data(*end.shortcut_scaled_transposed),
                     .bias = shift_of(line),
                     .c = out},
                    workspace + reserved);
    else if (line)
      launch_norm_apply(partition_norm(shape.pixels, shape.outputs), dtype,
                        {.in = added, .scale_shift = line, .out = out}, stream);
    plans[0]->run(stream,
                  {.a = arena.data(end.in),
                   .b = arena.data(end.scaled_transposed),
                   .bias = shift_of(arena.as<float>(end.scale_shift)),
                   .added = line ? out : added,
                   .relu_mask = arena.data(end.relu_mask),
                   .c = out},
                  workspace + reserved);
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
  const std::size_t zero_at = bias_bytes(dtype, shape.inputs), reserved = is_half ? zero_at + kZeroBytes : 0;
  return launching(context, [=, plans = plan_products(context, instruction, {of_input, of_gradient},
                                                      reserved)](const Arena& arena, cudaStream_t stream) {
    std::byte *const workspace = arena.workspace(), *const d_in = arena.data(end.d_in);
    const auto* const shift = arena.as<float>(end.shift);
    if (is_half) check(cudaMemsetAsync(workspace + zero_at, 0, sizeof(float), stream));
    plans[0]->run(stream,
                  {.a = arena.data(end.in),
                   .b = arena.data(end.factors),
                   .bias = round_bias(shift, dtype, shape.inputs, workspace, stream),
                   .factor = shift + shape.inputs,
                   .zero = reinterpret_cast<const float*>(workspace + zero_at),
                   .c = d_in},
                  workspace + reserved);
    plans[1]->run(stream, {.a = arena.data(end.d_out), .b = arena.data(end.scaled), .added = d_in, .c = d_in},
                  workspace + reserved);
  });
}

}  // namespace plumb::cuda
