// The dense layer as three matrix products: out = in weight^T + bias, d_in = d_out weight, d_weight = d_out^T
// in; d_bias is the column sums of d_out. Rows are images, in any number. Elements of an image and of a
// weight's row are in the order h, w, c (tensor_layout.h).
#include "kernels/cuda/vendors/dense.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "kernels/cuda/binding.h"
#include "kernels/cuda/own/elementwise.h"
#include "kernels/cuda/plan/blocks.h"

namespace plumb::cuda {
namespace {

struct Extent {
  std::int64_t rows = 0, in = 0, out = 0;
};

Extent extent_of(const Context& context, const Instruction& instruction) {
  const Dense& op = context.op<Dense>(instruction);
  const Shape &in = context.graph.values[op.in].shape, &out = context.graph.values[op.out].shape;
  return {.rows = in.n, .in = in.h * in.w * in.c, .out = out.c};
}

std::string text_of(const GemmProblem& problem) {
  return fmt::format("{} x {} x {} in {} to {}", problem.m, problem.n, problem.k, name_of(problem.in),
                     name_of(problem.out));
}

}  // namespace

GemmPlan GemmEngine::plan(const GemmProblem& problem, std::size_t workspace_limit) const {
  std::vector<GemmPlan> best = plans(problem, workspace_limit, 1);
  if (!best.empty()) return std::move(best.front());
  throw Error(ExitCode::internal,
              "{} cannot multiply {} within {} bytes of workspace; pass another one of --fp32, --tf32, "
              "--fp16 and --bf16",
              library, text_of(problem), workspace_limit);
}

std::vector<GemmPlan> plan_products(Context& context, Instruction& instruction,
                                    std::vector<GemmProblem> problems, std::size_t reserved) {
  const std::size_t limit = std::max(instruction.workspace_bytes, reserved) - reserved;
  std::vector<GemmPlan> plans;
  std::string engines;
  std::size_t most = 0;
  for (GemmProblem& problem : problems) {
    problem.allow_tf32 = context.program.allow_tf32;
    plans.push_back(context.products.plan(problem, limit));
    most = std::max(most, plans.back().workspace_bytes);
    append_part(engines, plans.back().engine, " + ");
  }
  instruction.workspace_bytes = reserved + most;
  instruction.engine = std::move(engines);
  return plans;
}
GemmPlan plan_product(Context& context, Instruction& instruction, const GemmProblem& problem,
                      std::size_t reserved) {
  return plan_products(context, instruction, {problem}, reserved).front();
}

Binder bind_product(Context& context, Instruction& instruction, const GemmProblem& problem, Read a, Read b,
                    Write c) {
  return launching(context, [=, plan = plan_product(context, instruction, problem)](const Arena& arena,
                                                                                    cudaStream_t stream) {
    plan.run(stream, {.a = arena.data(a), .b = arena.data(b), .c = arena.data(c)}, arena.workspace());
  });
}

const std::byte* RoundedOperand::round(const std::byte* from, std::byte* workspace,
                                       cudaStream_t stream) const {
  if (bytes == 0) return from;
  launch_cast(DType::f32, from, dtype, workspace, elements, 1, stream);
  return workspace;
}

Binder prepare(Context& context, Instruction& instruction, const DenseForward& dense) {
  const Extent extent = extent_of(context, instruction);
  const GemmProblem problem{.m = extent.rows,
                            .n = extent.out,
                            .k = extent.in,
                            .transpose_b = true,
                            .in = context.dtype(dense.in),
                            .out = context.dtype(dense.out),
                            .bias = true};
  const RoundedOperand bias{problem.out, extent.out};
  return launching(context, [=, plan = plan_product(context, instruction, problem, bias.bytes)](
                                const Arena& arena, cudaStream_t stream) {
    plan.run(stream,
             {.a = arena.data(dense.in),
              .b = arena.data(dense.weight),
              .bias = bias.round(arena.data(dense.bias), arena.workspace(), stream),
              .c = arena.data(dense.out)},
             arena.workspace() + bias.bytes);
  });
}

Binder prepare(Context& context, Instruction& instruction, const DenseBackwardData& dense) {
  const Extent extent = extent_of(context, instruction);
  const GemmProblem problem{.m = extent.rows,
                            .n = extent.in,
                            .k = extent.out,
                            .in = context.dtype(dense.d_out),
                            .out = context.dtype(dense.d_in)};
  return bind_product(context, instruction, problem, dense.d_out, dense.weight, dense.d_in);
}

Binder prepare(Context& context, Instruction& instruction, const DenseBackwardWeights& dense) {
  const Extent extent = extent_of(context, instruction);
  const DType dtype = context.dtype(dense.d_out);
  const GemmProblem problem{.m = extent.out,
                            .n = extent.in,
                            .k = extent.rows,
                            .transpose_a = true,
                            .in = dtype,
                            .out = context.dtype(dense.d_weight)};
  return launching(context, [=, plan = plan_product(context, instruction, problem)](const Arena& arena,
                                                                                    cudaStream_t stream) {
    plan.run(stream,
             {.a = arena.data(dense.d_out), .b = arena.data(dense.in), .c = arena.data(dense.d_weight)},
             arena.workspace());
    launch_column_sums(dtype, arena.data(dense.d_out), arena.as<float>(dense.d_bias), extent.rows, extent.out,
                       stream);
  });
}

}  // namespace plumb::cuda
