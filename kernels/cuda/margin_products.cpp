#include "kernels/cuda/margin_products.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/margin_features.h"
#include "kernels/cuda/margin_partition.h"

namespace plumb::cuda {
namespace {

// The factors and the product of a step, as places in Step::uses.
struct Places {
  std::size_t a = 0, b = 1, c = 2;
  std::size_t products = 0;  // one of them
};
Places places_of(StepKind kind) {
  if (kind == StepKind::margin_products) return {.a = 0, .b = 1, .c = 2, .products = 2};
  if (kind == StepKind::margin_feature_products) return {.a = 0, .b = 1, .c = 2, .products = 0};
  return {.a = 0, .b = 1, .c = 4, .products = 0};
}

// products [N, C] = x^ rows^T; d x^ [N, E] = products rows; U [C, E] = products^T x^.
GemmProblem problem_of(const Context& context, const Step& step, const MarginSizes& sizes) {
  const Places places = places_of(step.kind);
  const DType dtype = context.buffer(step, places.products).dtype;
  const std::int64_t stride = product_stride(sizes.classes, dtype);
  GemmProblem problem{
      .in = dtype, .out = context.buffer(step, places.c).dtype, .allow_tf32 = context.program.allow_tf32};
  if (step.kind == StepKind::margin_products) {
    problem.m = sizes.images, problem.n = sizes.classes, problem.k = sizes.embedding;
    problem.transpose_b = true, problem.c_stride = stride;
  } else if (step.kind == StepKind::margin_feature_products) {
    problem.m = sizes.images, problem.n = sizes.embedding, problem.k = sizes.classes;
    problem.a_stride = stride;
  } else {
    problem.m = sizes.classes, problem.n = sizes.embedding, problem.k = sizes.images;
    problem.transpose_a = true, problem.a_stride = stride;
  }
  return problem;
}

// x^ in the dtype of the other factor.
struct RoundedFeatures {
  BufferId normalized = 0;
  DType dtype = DType::f32;
  std::int64_t elements = 0;
  std::size_t bytes = 0;  // of the workspace, which begins with them
  ComputeFn at(const Arena& arena, std::byte* workspace, cudaStream_t stream) const {
    if (bytes == 0) return [] {};
    return [=, *this, from = arena.data(normalized)] {
      launch_cast(DType::f32, from, dtype, workspace, elements, 1, stream);
    };
  }
};

RoundedFeatures rounded_features(const Step& step, const MarginSizes& sizes, DType dtype) {
  if (step.kind == StepKind::margin_feature_products) return {};
  const std::size_t place = step.kind == StepKind::margin_products ? 0 : 1;
  return {.normalized = step.uses.at(place).buffer,
          .dtype = dtype,
          .elements = sizes.images * sizes.embedding,
          .bytes = margin_copy_bytes(sizes.images, sizes.embedding, dtype)};
}

}  // namespace

bool multiplies(StepKind kind) {
  return kind == StepKind::margin_products || kind == StepKind::margin_feature_products ||
         kind == StepKind::margin_weight_gradient;
}

Finish prepare_margin_products(Context& context, Step& step, const MarginSizes& sizes) {
  const Places places = places_of(step.kind);
  Buffer& products = context.program.buffers[step.uses[places.products].buffer];
  products.bytes = std::max(products.bytes, product_bytes(sizes.images, sizes.classes, products.dtype));
  const RoundedFeatures features = rounded_features(step, sizes, products.dtype);
  const std::size_t limit = std::max(step.workspace_bytes, features.bytes) - features.bytes;
  const std::shared_ptr<const GemmPlan> plan = context.products.plan(problem_of(context, step, sizes), limit);
  step.workspace_bytes = features.bytes + plan->workspace_bytes();
  return [=, kind = step.kind, uses = step.uses, lane = step.lane, stream = context.stream,
          out_dtype = context.buffer(step, places.c).dtype](const Arena& arena) -> ComputeFn {
    std::byte* workspace = arena.workspace(lane);
    const auto factor = [&](std::size_t place) -> const std::byte* {
      const bool rounded = features.bytes > 0 && uses[place].buffer == features.normalized;
      return rounded ? workspace : arena.data(uses[place].buffer);
    };
    const GemmOperands operands{
        .a = factor(places.a), .b = factor(places.b), .c = arena.data(uses[places.c].buffer)};
    const auto multiply = [=, round = features.at(arena, workspace, stream),
                           rest = workspace + features.bytes] {
      round();
      plan->run(stream, operands, rest);
    };
    if (kind != StepKind::margin_weight_gradient) return multiply;
    const ProjectedRows rows{.d_rows = operands.c,
                             .rows = arena.data(uses[2].buffer),
                             .d_rows_dtype = out_dtype,
                             .rows_dtype = features.dtype,
                             .inverse_norms = arena.as<float>(uses[3].buffer)};
    return [=] {
      multiply();
      launch_project_rows(rows, sizes.classes, sizes.embedding, stream);
    };
  };
}

}  // namespace plumb::cuda
