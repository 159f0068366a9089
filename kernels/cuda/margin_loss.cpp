#include "kernels/cuda/own/margin_loss.h"

#include "kernels/cuda/binding.h"
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
  instruction.workspace_bytes = sample_workspace_bytes(sizes.images, sizes.rows);
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
  const MarginLogits logits = logits_of(context, instruction, margin);
  instruction.workspace_bytes = statistics_workspace_bytes(logits.images, logits.classes, logits.dtype);
  return launching(context,
                   [=, op = context.op<MarginLoss>(instruction)](const Arena& arena, cudaStream_t stream) {
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

}  // namespace plumb::cuda
