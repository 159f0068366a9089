// The three products of a margin loss with the class centers, by the dense layers' engine. Both factors have
// the dtype of the centers' rows; for a half type, x^ is first rounded into the workspace.
#include <algorithm>

#include "kernels/cuda/binding.h"
#include "kernels/cuda/own/margin_loss.h"
#include "kernels/cuda/plan/margin_partition.h"
#include "models/margin_head.h"

namespace plumb::cuda {
namespace {

// Grows `products` to rows at multiples of 16 bytes; returns the row stride in elements.
std::int64_t pad_products(const Context& context, BufferId products, const MarginSizes& sizes) {
  Buffer& buffer = context.program.buffers[products];
  buffer.bytes = std::max(buffer.bytes, product_bytes(sizes.images, sizes.rows, buffer.dtype));
  return product_stride(sizes.rows, buffer.dtype);
}

}  // namespace

// products [N, C] = x^ rows^T
Binder prepare(Context& context, Instruction& instruction, const MarginProducts& margin) {
  const MarginSizes sizes = margin_sizes(context.graph, instruction.op);
  const DType dtype = context.dtype(margin.products);
  const RoundedOperand features{dtype, sizes.images * sizes.embedding};
  const GemmProblem problem{.m = sizes.images,
                            .n = sizes.rows,
                            .k = sizes.embedding,
                            .transpose_b = true,
                            .c_stride = pad_products(context, margin.products, sizes),
                            .in = dtype,
                            .out = dtype};
  return launching(context, [=, plan = plan_product(context, instruction, problem, features.bytes)](
                                const Arena& arena, cudaStream_t stream) {
    const std::byte* x = features.round(arena.data(margin.normalized), arena.workspace(), stream);
    plan.run(stream, {.a = x, .b = arena.data(margin.rows), .c = arena.data(margin.products)},
             arena.workspace() + features.bytes);
  });
}

// d x^ [N, E] = products rows
Binder prepare(Context& context, Instruction& instruction, const MarginFeatureProducts& margin) {
  const MarginSizes sizes = margin_sizes(context.graph, instruction.op);
  const GemmProblem problem{.m = sizes.images,
                            .n = sizes.embedding,
                            .k = sizes.rows,
                            .a_stride = pad_products(context, margin.products, sizes),
                            .in = context.dtype(margin.products),
                            .out = context.dtype(margin.d_normalized)};
  return bind_product(context, instruction, problem, margin.products, margin.rows, margin.d_normalized);
}

// U [C, E] = products^T x^, then the gradient through the division by the centers' norms.
Binder prepare(Context& context, Instruction& instruction, const MarginWeightGradient& margin) {
  const MarginSizes sizes = margin_sizes(context.graph, instruction.op);
  const DType dtype = context.dtype(margin.products);
  const RoundedOperand features{dtype, sizes.images * sizes.embedding};
  const GemmProblem problem{.m = sizes.rows,
                            .n = sizes.embedding,
                            .k = sizes.images,
                            .transpose_a = true,
                            .a_stride = pad_products(context, margin.products, sizes),
                            .in = dtype,
                            .out = dtype};
  return launching(context, [=, plan = plan_product(context, instruction, problem, features.bytes)](
                                const Arena& arena, cudaStream_t stream) {
    const std::byte* x = features.round(arena.data(margin.normalized), arena.workspace(), stream);
    plan.run(stream, {.a = arena.data(margin.products), .b = x, .c = arena.data(margin.d_rows)},
             arena.workspace() + features.bytes);
    launch_project_rows(dtype, arena.data(margin.d_rows), arena.data(margin.rows),
                        arena.as<float>(margin.class_inverse_norms), sizes.rows, sizes.embedding, stream);
  });
}

}  // namespace plumb::cuda
