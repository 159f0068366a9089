#include "kernels/cuda/margin_loss.h"

#include "kernels/cuda/binding.h"
#include "kernels/cuda/margin_features.h"
#include "kernels/cuda/margin_products.h"
#include "kernels/cuda/margin_sample.h"

namespace plumb::cuda {
namespace {

Finish prepare_features(const Context& context, const Step& step) {
  const Shape shape = context.graph.values[std::get<MarginLoss>(context.graph.ops[step.op]).in].shape;
  return [=, uses = step.uses, stream = context.stream](const Arena& arena) -> ComputeFn {
    const MarginFeatures at{.features = arena.as<float>(uses[0].buffer),
                            .labels = arena.as<std::int32_t>(uses[1].buffer),
                            .normalized = arena.as<float>(uses[2].buffer),
                            .labels_out = arena.as<std::int32_t>(uses[3].buffer),
                            .inverse_norms = arena.as<float>(uses[4].buffer)};
    return [=] { launch_margin_features(at, shape.n, shape.c, stream); };
  };
}

Finish prepare_features_backward(const Context& context, const Step& step) {
  const Shape shape = context.graph.values[std::get<MarginLoss>(context.graph.ops[step.op]).in].shape;
  return [=, uses = step.uses, stream = context.stream](const Arena& arena) -> ComputeFn {
    const auto floats = [&](std::size_t use) { return arena.as<float>(uses[use].buffer); };
    return [=, d_unit = floats(0), unit = floats(1), inverse_norms = floats(2), d_features = floats(3)] {
      launch_features_backward(d_unit, unit, inverse_norms, d_features, shape.n, shape.c, stream);
    };
  };
}

Finish prepare_sample(Context& context, Step& step, const MarginLoss& op, const MarginSizes& sizes) {
  const auto own_classes = static_cast<std::int32_t>(context.graph.parameters[op.weight].dims.at(0));
  step.workspace_bytes =
      margin_workspace_bytes(step.kind, sizes.images, sizes.classes, sizes.embedding, DType::f32);
  const MarginSample sample{.key = sample_key(op),
                            .images = sizes.images,
                            .capacity = sizes.classes,
                            .first_class = static_cast<std::int32_t>(op.first_class),
                            .own_classes = own_classes,
                            .least = static_cast<std::int32_t>(sampled_rows(op.sample_rate, own_classes))};
  return [=, uses = step.uses, lane = step.lane, stream = context.stream](const Arena& arena) -> ComputeFn {
    MarginSample at = sample;
    at.labels = arena.as<std::int32_t>(uses[0].buffer);
    at.state = arena.as<State>(uses[1].buffer);
    at.samples = arena.as<std::int32_t>(uses[2].buffer);
    at.sample_count = arena.as<std::int32_t>(uses[3].buffer);
    at.columns = arena.as<std::int32_t>(uses[4].buffer);
    at.workspace = reinterpret_cast<std::int32_t*>(arena.workspace(lane));
    return [=] { launch_margin_sample(at, stream); };
  };
}

Finish prepare_gather(const Context& context, const Step& step, const MarginSizes& sizes) {
  return [=, uses = step.uses, dtype = context.buffer(step, 3).dtype,
          stream = context.stream](const Arena& arena) -> ComputeFn {
    const GatheredRows at{.samples = arena.as<std::int32_t>(uses[0].buffer),
                          .sample_count = arena.as<std::int32_t>(uses[1].buffer),
                          .weight = arena.as<float>(uses[2].buffer),
                          .rows = arena.data(uses[3].buffer),
                          .dtype = dtype};
    return [=] { launch_margin_gather(at, sizes.classes, sizes.embedding, stream); };
  };
}

Finish prepare_class_norms(const Context& context, const Step& step, const MarginLoss& op,
                           const MarginSizes& sizes) {
  return [=, uses = step.uses, sampled = op.head == Head::sampled, dtype = context.buffer(step, 0).dtype,
          stream = context.stream](const Arena& arena) -> ComputeFn {
    const std::byte* rows = arena.data(uses[0].buffer);
    const auto* count = sampled ? arena.as<std::int32_t>(uses[1].buffer) : nullptr;
    return [=, norms = arena.as<float>(uses.back().buffer)] {
      launch_class_norms(dtype, rows, count, norms, sizes.classes, sizes.embedding, stream);
    };
  };
}

// What margin_statistics and margin_gradient have at the same places; what else they use begins at `next`.
struct SoftmaxUses {
  SoftmaxUses(const Context& context, const Step& step, const MarginLoss& op, const MarginSizes& sizes)
      : uses(step.uses),
        dtype(context.buffer(step, 0).dtype),
        sampled(op.head == Head::sampled),
        next(sampled ? 4 : 3),
        images(sizes.images),
        classes(sizes.classes),
        first_class(sampled ? 0 : static_cast<std::int32_t>(op.first_class)) {}
  MarginLogits logits(const Arena& arena) const {
    return {.products = arena.data(uses[0].buffer),
            .dtype = dtype,
            .images = images,
            .classes = classes,
            .class_inverse_norms = arena.as<float>(uses[1].buffer),
            .columns = arena.as<std::int32_t>(uses[2].buffer),
            .first_class = first_class,
            .sample_count = sampled ? arena.as<std::int32_t>(uses[3].buffer) : nullptr};
  }
  float* floats(const Arena& arena, std::size_t place) const {
    return arena.as<float>(uses.at(next + place).buffer);
  }

  std::vector<BufferUse> uses;
  DType dtype;
  bool sampled;
  std::size_t next;
  std::int64_t images, classes;
  std::int32_t first_class;
};

Finish prepare_statistics(const Context& context, Step& step, const MarginLoss& op,
                          const MarginSizes& sizes) {
  const SoftmaxUses softmax(context, step, op, sizes);
  step.workspace_bytes =
      margin_workspace_bytes(step.kind, sizes.images, sizes.classes, sizes.embedding, softmax.dtype);
  return [=, rule = rule_of(op), lane = step.lane, stream = context.stream](const Arena& arena) -> ComputeFn {
    const MarginRows rows{.local_max = softmax.floats(arena, 0),
                          .row_max = softmax.floats(arena, 1),
                          .row_sums = softmax.floats(arena, 2),
                          .target_factor = softmax.floats(arena, 3)};
    auto* shares = reinterpret_cast<RowShare*>(arena.workspace(lane));
    return
        [=, logits = softmax.logits(arena)] { launch_margin_statistics(logits, rule, rows, shares, stream); };
  };
}

Finish prepare_rescale(const Context& context, const Step& step, const MarginSizes& sizes) {
  return [=, uses = step.uses, stream = context.stream](const Arena& arena) -> ComputeFn {
    const MarginRows rows{.local_max = arena.as<float>(uses[0].buffer),
                          .row_max = arena.as<float>(uses[1].buffer),
                          .row_sums = arena.as<float>(uses[2].buffer)};
    return [=] { launch_margin_rescale(rows, sizes.images, stream); };
  };
}

Finish prepare_gradient(const Context& context, const Step& step, const MarginLoss& op,
                        const MarginSizes& sizes) {
  const std::int64_t batch = context.graph.batch();
  return [softmax = SoftmaxUses(context, step, op, sizes), own = OwnImages{op.rank * batch, batch},
          scale = static_cast<float>(op.scale), records = context.records,
          stream = context.stream](const Arena& arena) -> ComputeFn {
    const MarginRows rows{.row_max = softmax.floats(arena, 0),
                          .row_sums = softmax.floats(arena, 1),
                          .target_factor = softmax.floats(arena, 2)};
    const auto* state = arena.as<State>(softmax.uses.at(softmax.next + 3).buffer);
    return [=, logits = softmax.logits(arena)] {
      launch_margin_gradient(logits, scale, rows, own, state, records, stream);
    };
  };
}

}  // namespace

MarginRule rule_of(const MarginLoss& op) {
  return {.scale = static_cast<float>(op.scale),
          .m1 = op.margins.m1,
          .m2 = op.margins.m2,
          .m3 = op.margins.m3,
          .straight_through = op.gradient == MarginLoss::Gradient::straight_through};
}

Finish prepare_margin_loss(Context& context, Step& step) {
  const MarginLoss& op = std::get<MarginLoss>(context.graph.ops[step.op]);
  const MarginSizes sizes = margin_sizes(context.graph, op);
  if (multiplies(step.kind)) return prepare_margin_products(context, step, sizes);
  step.workspace_bytes = 0;
  switch (step.kind) {
    case StepKind::margin_features:
      return prepare_features(context, step);
    case StepKind::margin_sample:
      return prepare_sample(context, step, op, sizes);
    case StepKind::margin_gather:
      return prepare_gather(context, step, sizes);
    case StepKind::margin_class_norms:
      return prepare_class_norms(context, step, op, sizes);
    case StepKind::margin_statistics:
      return prepare_statistics(context, step, op, sizes);
    case StepKind::margin_rescale:
      return prepare_rescale(context, step, sizes);
    case StepKind::margin_gradient:
      return prepare_gradient(context, step, op, sizes);
    default:
      return prepare_features_backward(context, step);
  }
}

}  // namespace plumb::cuda
