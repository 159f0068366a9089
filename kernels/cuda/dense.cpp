// The dense layer as three products of matrices: out = in weight^T + bias, d_in = d_out weight, d_weight =
// d_out^T in; d_bias is the column sums of d_out. Rows are images; their number is any. An image's elements
// are in the order h, w, c, those of a row of the weight, too (tensor_layout.h).
#include "kernels/cuda/dense.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/cuda/binding.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/norm_partition.h"

namespace plumb::cuda {
namespace {

struct Extent {
  std::int64_t rows = 0, in = 0, out = 0;
};

GemmProblem problem_of(const Context& context, const Step& step, const Extent& extent) {
  const bool forward = step.kind == StepKind::dense_forward;
  GemmProblem problem{.in = context.buffer(step, 0).dtype,
                      .out = context.buffer(step, forward ? 3 : 2).dtype,
                      .bias = forward,
                      .allow_tf32 = context.program.allow_tf32};
  if (forward) {
    problem.m = extent.rows, problem.n = extent.out, problem.k = extent.in;
    problem.transpose_b = true;
  } else if (step.kind == StepKind::dense_backward_data) {
    problem.m = extent.rows, problem.n = extent.in, problem.k = extent.out;
  } else {
    problem.m = extent.out, problem.n = extent.in, problem.k = extent.rows;
    problem.transpose_a = true;
  }
  return problem;
}

// The products of a step, as places in Step::uses.
struct Places {
  std::size_t a = 0, b = 1, c = 2;
};

Places places_of(StepKind kind) {
  switch (kind) {
    case StepKind::dense_forward:
      return {.a = 0, .b = 1, .c = 3};
    case StepKind::dense_backward_data:
      return {.a = 0, .b = 1, .c = 2};
    default:
      return {.a = 1, .b = 0, .c = 2};
  }
}

// The workspace begins with the bias in the dtype of an output in half precision, which the product wants.
std::size_t rounded_bias_bytes(const GemmProblem& problem) {
  if (!problem.bias || problem.out == DType::f32) return 0;
  return static_cast<std::size_t>(divide_up(problem.n, 128) * 128) * bytes_of(problem.out);
}

std::string text_of(const GemmProblem& problem) {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  return number(problem.m) + " x " + number(problem.n) + " x " + number(problem.k) + " in " +
         std::string(name_of(problem.in)) + " to " + std::string(name_of(problem.out));
}

}  // namespace

std::unique_ptr<GemmPlan> GemmEngine::plan(const GemmProblem& problem, std::size_t workspace_limit) {
  std::vector<std::unique_ptr<GemmPlan>> best = plans(problem, workspace_limit, 1);
  if (!best.empty()) return std::move(best.front());
  throw Error(ExitCode::internal,
              library() + " has no way to multiply " + text_of(problem) + " within " +
                  std::to_string(workspace_limit) +
                  " bytes of workspace; choose another one of --fp32, --tf32, --fp16 and --bf16");
}

Finish prepare_dense(Context& context, Step& step) {
  const Dense& op = std::get<Dense>(context.graph.ops[step.op]);
  const Shape &in = context.graph.values[op.in].shape, &out = context.graph.values[op.out].shape;
  const Extent extent{.rows = in.n, .in = in.h * in.w * in.c, .out = out.c};
  const GemmProblem problem = problem_of(context, step, extent);
  const std::size_t bias_bytes = rounded_bias_bytes(problem);
  const std::shared_ptr<const GemmPlan> plan =
      context.products.plan(problem, std::max(step.workspace_bytes, bias_bytes) - bias_bytes);
  step.workspace_bytes = bias_bytes + plan->workspace_bytes();
  step.engine = plan->engine();
  return [=, kind = step.kind, uses = step.uses, lane = step.lane, stream = context.stream,
          d_out_dtype = context.buffer(step, 1).dtype](const Arena& arena) -> ComputeFn {
    const Places places = places_of(kind);
    std::byte* workspace = arena.workspace(lane);
    const std::byte* bias = kind == StepKind::dense_forward ? arena.data(uses[2].buffer) : nullptr;
    const GemmOperands operands{.a = arena.data(uses[places.a].buffer),
                                .b = arena.data(uses[places.b].buffer),
                                .bias = bias_bytes > 0 ? workspace : bias,
                                .c = arena.data(uses[places.c].buffer)};
    if (bias_bytes > 0)
      return [=] {
        launch_cast(DType::f32, bias, problem.out, workspace, problem.n, 1, stream);
        plan->run(stream, operands, workspace + bias_bytes);
      };
    if (kind != StepKind::dense_backward_weights) return [=] { plan->run(stream, operands, workspace); };
    return [=, d_bias = arena.as<float>(uses[3].buffer)] {
      plan->run(stream, operands, workspace);
      launch_column_sums(d_out_dtype, operands.a, d_bias, extent.rows, extent.out, stream);
    };
  };
}

}  // namespace plumb::cuda
