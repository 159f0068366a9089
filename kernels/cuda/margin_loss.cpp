#include "kernels/cuda/own/margin_loss.h"

#include <algorithm>

#include "kernels/cuda/binding.h"
#include "kernels/cuda/plan/margin_partition.h"
#include "models/margin_head.h"

namespace plumb::cuda {
namespace {

// For MarginStatistics and MarginGradient, without addresses.
MarginLogits logits_of(const Context& context, const Instruction& instruction, const auto& margin) {
  const MarginSizes sizes = margin_sizes(context.graph, instruction.op);
  const std::int64_t first_class = margin.sample_count ? 0 : context.op<MarginLoss>(instruction).first_class;
  return {.dtype = context.dtype(margin.products),
          .images = sizes.images,
          .classes = sizes.rows,
          .first_class = static_cast<std::int32_t>(first_class)};
}
MarginLogits at(const Arena& arena, MarginLogits logits, const auto& margin) {
  logits.products = arena.data(margin.products);
  logits.class_inverse_norms = arena.as<float>(margin.class_inverse_norms);
  logits.columns = arena.as<std::int32_t>(margin.columns);
  logits.sample_count = arena.optional<std::int32_t>(margin.sample_count);
  return logits;
}

// Grows `products` to rows at multiples of 16 bytes; returns the row stride in elements.
std::int64_t pad_products(const Context& context, BufferId products, const MarginSizes& sizes) {
  Buffer& buffer = context.program.buffers[products];
  buffer.bytes = std::max(buffer.bytes, product_bytes(sizes.images, sizes.rows, buffer.dtype));
  return product_stride(sizes.rows, buffer.dtype);
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const MarginNormalize& margin) {
  return launching(context, [=, shape = context.graph.values[context.op<MarginLoss>(instruction).in].shape](
                                const Arena& arena, cudaStream_t stream) {
    launch_margin_features({.features = arena.as<float>(margin.features),
                            .labels = arena.as<std::int32_t>(margin.labels),
                            .normalized = arena.as<float>(margin.normalized),
                            .labels_out = arena.as<std::int32_t>(margin.own_labels),
                            .inverse_norms = arena.as<float>(margin.inverse_norms)},
                           shape.n, shape.c, stream);
  });
}

Binder prepare(Context& context, Instruction& instruction, const MarginFeaturesBackward& margin) {
  return launching(context, [=, shape = context.graph.values[context.op<MarginLoss>(instruction).in].shape](
                                const Arena& arena, cudaStream_t stream) {
    launch_features_backward(arena.as<float>(margin.d_normalized), arena.as<float>(margin.normalized),
                             arena.as<float>(margin.inverse_norms), arena.as<float>(margin.d_features),
                             shape.n, shape.c, stream);
  });
}

Binder prepare(Context& context, Instruction& instruction, const MarginSampleClasses& margin) {
  const MarginLoss& op = context.op<MarginLoss>(instruction);
  const MarginSizes sizes = margin_sizes(context.graph, instruction.op);
  const auto own_classes = static_cast<std::int32_t>(context.graph.parameters[op.weight].dims.at(0));
  return launching(context, [=, key = sample_key(op), first_class = static_cast<std::int32_t>(op.first_class),
                             least = static_cast<std::int32_t>(sampled_rows(op.sample_rate, own_classes))](
                                const Arena& arena, cudaStream_t stream) {
    launch_margin_sample({.labels = arena.as<std::int32_t>(margin.labels),
                          .state = arena.as<State>(margin.state),
                          .samples = arena.as<std::int32_t>(margin.samples),
                          .sample_count = arena.as<std::int32_t>(margin.sample_count),
                          .columns = arena.as<std::int32_t>(margin.columns),
                          .workspace = arena.workspace<std::int32_t>(),
                          .key = key,
                          .images = sizes.images,
                          .capacity = sizes.rows,
                          .first_class = first_class,
                          .own_classes = own_classes,
                          .least = least},
                         stream);
  });
}

Binder prepare(Context& context, Instruction& instruction, const MarginGatherRows& margin) {
  return launching(context, [=, sizes = margin_sizes(context.graph, instruction.op),
                             dtype = context.dtype(margin.rows)](const Arena& arena, cudaStream_t stream) {
    launch_margin_gather({.samples = arena.as<std::int32_t>(margin.samples),
                          .sample_count = arena.as<std::int32_t>(margin.sample_count),
                          .weight = arena.as<float>(margin.weight),
                          .rows = arena.data(margin.rows),
                          .dtype = dtype},
                         sizes.rows, sizes.embedding, stream);
  });
}

Binder prepare(Context& context, Instruction& instruction, const MarginClassNorms& margin) {
  return launching(context, [=, sizes = margin_sizes(context.graph, instruction.op),
                             dtype = context.dtype(margin.rows)](const Arena& arena, cudaStream_t stream) {
    launch_class_norms(dtype, arena.data(margin.rows), arena.optional<std::int32_t>(margin.sample_count),
                       arena.as<float>(margin.class_inverse_norms), sizes.rows, sizes.embedding, stream);
  });
}

Binder prepare(Context& context, Instruction& instruction, const MarginStatistics& margin) {
  return launching(context,
                   [=, logits = logits_of(context, instruction, margin),
                    op = context.op<MarginLoss>(instruction)](const Arena& arena, cudaStream_t stream) {
                     launch_margin_statistics(at(arena, logits, margin), op,
                                              {.local_max = arena.as<float>(margin.local_max),
                                               .row_max = arena.as<float>(margin.row_max),
                                               .row_sums = arena.as<float>(margin.row_sums),
                                               .target_factor = arena.as<float>(margin.target_factor)},
                                              arena.workspace<RowShare>(), stream);
                   });
}

Binder prepare(Context& context, Instruction& instruction, const MarginRescale& margin) {
  return launching(context, [=, images = margin_sizes(context.graph, instruction.op).images](
                                const Arena& arena, cudaStream_t stream) {
    launch_margin_rescale({.local_max = arena.as<float>(margin.local_max),
                           .row_max = arena.as<float>(margin.row_max),
                           .row_sums = arena.as<float>(margin.row_sums)},
                          images, stream);
  });
}

Binder prepare(Context& context, Instruction& instruction, const MarginGradient& margin) {
  const MarginLoss& op = context.op<MarginLoss>(instruction);
  const std::int64_t batch = context.graph.batch();
  return launching(context, [=, logits = logits_of(context, instruction, margin),
                             own = OwnImages{op.rank * batch, batch}, scale = static_cast<float>(op.scale),
                             records = context.records](const Arena& arena, cudaStream_t stream) {
    launch_margin_gradient(at(arena, logits, margin), scale,
                           {.row_max = arena.as<float>(margin.row_max),
                            .row_sums = arena.as<float>(margin.row_sums),
                            .target_factor = arena.as<float>(margin.target_factor)},
                           own, arena.as<State>(margin.state), records, stream);
  });
}

// The three products with the class centers, by the dense layers' engine. Both factors have the dtype of the
// centers' rows; for a half type, x^ is first rounded into the workspace.

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
