#include "kernels/cuda/margin_loss.h"

#include "kernels/cuda/binding.h"
#include "kernels/cuda/margin_features.h"
#include "kernels/cuda/margin_sample.h"
#include "kernels/cuda/margin_sizes.h"

namespace plumb::cuda {
namespace {

const MarginLoss& loss_of(const Context& context, const Instruction& instruction) {
  return std::get<MarginLoss>(context.graph.ops[instruction.op]);
}

// Common to MarginStatistics and MarginGradient.
struct Logits {
  template <typename Margin>
  Logits(const Context& context, const Instruction& instruction, const Margin& margin)
      : products(margin.products),
        class_inverse_norms(margin.class_inverse_norms),
        columns(margin.columns),
        sample_count(margin.sample_count),
        dtype(context.dtype(margin.products)),
        sizes(margin_sizes(context.graph, instruction)),
        first_class(sample_count ? 0 : static_cast<std::int32_t>(loss_of(context, instruction).first_class)) {
  }
  MarginLogits at(const Arena& arena) const {
    return {.products = arena.data(products),
            .dtype = dtype,
            .images = sizes.images,
            .classes = sizes.classes,
            .class_inverse_norms = arena.as<float>(class_inverse_norms),
            .columns = arena.as<std::int32_t>(columns),
            .first_class = first_class,
            .sample_count = arena.optional<std::int32_t>(sample_count)};
  }

  BufferId products, class_inverse_norms, columns;
  std::optional<Read> sample_count;
  DType dtype;
  MarginSizes sizes;
  std::int32_t first_class;
};

}  // namespace

MarginRule rule_of(const MarginLoss& op) {
  return {.scale = static_cast<float>(op.scale),
          .m1 = op.margins.m1,
          .m2 = op.margins.m2,
          .m3 = op.margins.m3,
          .straight_through = op.gradient == MarginLoss::Gradient::straight_through};
}

Binder prepare(Context& context, Instruction& instruction, const MarginNormalize& margin) {
  const Shape shape = context.graph.values[loss_of(context, instruction).in].shape;
  return [=, stream = context.stream](const Arena& arena) -> ComputeFn {
    const MarginFeatures at{.features = arena.as<float>(margin.features),
                            .labels = arena.as<std::int32_t>(margin.labels),
                            .normalized = arena.as<float>(margin.normalized),
                            .labels_out = arena.as<std::int32_t>(margin.own_labels),
                            .inverse_norms = arena.as<float>(margin.inverse_norms)};
    return [=] { launch_margin_features(at, shape.n, shape.c, stream); };
  };
}

Binder prepare(Context& context, Instruction& instruction, const MarginFeaturesBackward& margin) {
  const Shape shape = context.graph.values[loss_of(context, instruction).in].shape;
  return [=, stream = context.stream](const Arena& arena) -> ComputeFn {
    return [=, d_unit = arena.as<float>(margin.d_normalized), unit = arena.as<float>(margin.normalized),
            inverse_norms = arena.as<float>(margin.inverse_norms),
            d_features = arena.as<float>(margin.d_features)] {
      launch_features_backward(d_unit, unit, inverse_norms, d_features, shape.n, shape.c, stream);
    };
  };
}

Binder prepare(Context& context, Instruction& instruction, const MarginSampleClasses& margin) {
  const MarginLoss& op = loss_of(context, instruction);
  const MarginSizes sizes = margin_sizes(context.graph, instruction);
  const auto own_classes = static_cast<std::int32_t>(context.graph.parameters[op.weight].dims.at(0));
  instruction.workspace_bytes = sample_workspace_bytes(sizes.images, sizes.classes);
  const MarginSample sample{.key = sample_key(op),
                            .images = sizes.images,
                            .capacity = sizes.classes,
                            .first_class = static_cast<std::int32_t>(op.first_class),
                            .own_classes = own_classes,
                            .least = static_cast<std::int32_t>(sampled_rows(op.sample_rate, own_classes))};
  return [=, lane = instruction.lane, stream = context.stream](const Arena& arena) -> ComputeFn {
    MarginSample at = sample;
    at.labels = arena.as<std::int32_t>(margin.labels);
    at.state = arena.as<State>(margin.state);
    at.samples = arena.as<std::int32_t>(margin.samples);
    at.sample_count = arena.as<std::int32_t>(margin.sample_count);
    at.columns = arena.as<std::int32_t>(margin.columns);
    at.workspace = reinterpret_cast<std::int32_t*>(arena.workspace(lane));
    return [=] { launch_margin_sample(at, stream); };
  };
}

Binder prepare(Context& context, Instruction& instruction, const MarginGatherRows& margin) {
  return [=, sizes = margin_sizes(context.graph, instruction), dtype = context.dtype(margin.rows),
          stream = context.stream](const Arena& arena) -> ComputeFn {
    const GatheredRows at{.samples = arena.as<std::int32_t>(margin.samples),
                          .sample_count = arena.as<std::int32_t>(margin.sample_count),
                          .weight = arena.as<float>(margin.weight),
                          .rows = arena.data(margin.rows),
                          .dtype = dtype};
    return [=] { launch_margin_gather(at, sizes.classes, sizes.embedding, stream); };
  };
}

Binder prepare(Context& context, Instruction& instruction, const MarginClassNorms& margin) {
  return [=, sizes = margin_sizes(context.graph, instruction), dtype = context.dtype(margin.rows),
          stream = context.stream](const Arena& arena) -> ComputeFn {
    return [=, rows = arena.data(margin.rows), count = arena.optional<std::int32_t>(margin.sample_count),
            norms = arena.as<float>(margin.class_inverse_norms)] {
      launch_class_norms(dtype, rows, count, norms, sizes.classes, sizes.embedding, stream);
    };
  };
}

Binder prepare(Context& context, Instruction& instruction, const MarginStatistics& margin) {
  const Logits logits(context, instruction, margin);
  instruction.workspace_bytes =
      statistics_workspace_bytes(logits.sizes.images, logits.sizes.classes, logits.dtype);
  return [=, rule = rule_of(loss_of(context, instruction)), lane = instruction.lane,
          stream = context.stream](const Arena& arena) -> ComputeFn {
    const MarginRows rows{.local_max = arena.as<float>(margin.local_max),
                          .row_max = arena.as<float>(margin.row_max),
                          .row_sums = arena.as<float>(margin.row_sums),
                          .target_factor = arena.as<float>(margin.target_factor)};
    return [=, at = logits.at(arena), shares = reinterpret_cast<RowShare*>(arena.workspace(lane))] {
      launch_margin_statistics(at, rule, rows, shares, stream);
    };
  };
}

Binder prepare(Context& context, Instruction& instruction, const MarginRescale& margin) {
  return [=, images = margin_sizes(context.graph, instruction).images,
          stream = context.stream](const Arena& arena) -> ComputeFn {
    const MarginRows rows{.local_max = arena.as<float>(margin.local_max),
                          .row_max = arena.as<float>(margin.row_max),
                          .row_sums = arena.as<float>(margin.row_sums)};
    return [=] { launch_margin_rescale(rows, images, stream); };
  };
}

Binder prepare(Context& context, Instruction& instruction, const MarginGradient& margin) {
  const MarginLoss& op = loss_of(context, instruction);
  const std::int64_t batch = context.graph.batch();
  return [=, logits = Logits(context, instruction, margin), own = OwnImages{op.rank * batch, batch},
          scale = static_cast<float>(op.scale), records = context.records,
          stream = context.stream](const Arena& arena) -> ComputeFn {
    const MarginRows rows{.row_max = arena.as<float>(margin.row_max),
                          .row_sums = arena.as<float>(margin.row_sums),
                          .target_factor = arena.as<float>(margin.target_factor)};
    return [=, at = logits.at(arena), state = arena.as<State>(margin.state)] {
      launch_margin_gradient(at, scale, rows, own, state, records, stream);
    };
  };
}

}  // namespace plumb::cuda
