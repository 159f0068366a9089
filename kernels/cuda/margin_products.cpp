// The three products of a margin loss with the class centers, by the dense layers' engine. Both factors have
// the dtype of the centers' rows; for a half type, x^ is first rounded into the workspace.
#include <algorithm>

#include "kernels/cuda/binding.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/margin_features.h"
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

// x^ in another dtype, at the start of the workspace.
struct RoundedFeatures {
  DType dtype = DType::f32;
  std::int64_t elements = 0;
  std::size_t bytes = 0;

  RoundedFeatures(const MarginSizes& sizes, DType rows_dtype)
      : dtype(rows_dtype),
        elements(sizes.images * sizes.embedding),
        bytes(margin_copy_bytes(sizes.images, sizes.embedding, rows_dtype)) {}
  // Enqueues the rounding; returns the address of the x^ to read.
  const std::byte* round(const std::byte* normalized, std::byte* workspace, cudaStream_t stream) const {
    if (bytes == 0) return normalized;
    launch_cast(DType::f32, normalized, dtype, workspace, elements, 1, stream);
    return workspace;
  }
};

}  // namespace

// products [N, C] = x^ rows^T
Binder prepare(Context& context, Instruction& instruction, const MarginProducts& margin) {
  const MarginSizes sizes = margin_sizes(context.graph, instruction.op);
  const DType dtype = context.dtype(margin.products);
  const RoundedFeatures features(sizes, dtype);
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
    plan->run(stream, {.a = x, .b = arena.data(margin.rows), .c = arena.data(margin.products)},
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
  return launching(context, [=, plan = plan_product(context, instruction, problem)](const Arena& arena,
                                                                                    cudaStream_t stream) {
    plan->run(stream,
              {.a = arena.data(margin.products),
               .b = arena.data(margin.rows),
               .c = arena.data(margin.d_normalized)},
              arena.workspace());
  });
}

// U [C, E] = products^T x^, then the gradient through the division by the centers' norms.
Binder prepare(Context& context, Instruction& instruction, const MarginWeightGradient& margin) {
  const MarginSizes sizes = margin_sizes(context.graph, instruction.op);
  const DType dtype = context.dtype(margin.products);
  const RoundedFeatures features(sizes, dtype);
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
    plan->run(stream, {.a = arena.data(margin.products), .b = x, .c = arena.data(margin.d_rows)},
              arena.workspace() + features.bytes);
    launch_project_rows({.d_rows = arena.data(margin.d_rows),
                         .rows = arena.data(margin.rows),
                         .dtype = dtype,
                         .inverse_norms = arena.as<float>(margin.class_inverse_norms)},
                        sizes.rows, sizes.embedding, stream);
  });
}

}  // namespace plumb::cuda
