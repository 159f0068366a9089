// Convolution steps: what each asks of the engine, and the operands that it runs on.
#include "kernels/cuda/conv.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/binding.h"
#include "kernels/cuda/depthwise_shape.h"

namespace plumb::cuda {
namespace {

// Where a step's uses hold the convolution's input, or the gradient of it.
std::size_t input_use(StepKind kind) {
  switch (kind) {
    case StepKind::conv_backward_data:
    case StepKind::conv_norm_backward_data:
      return 2;
    default:
      return 0;
  }
}

// As held, padding included: dims are logical.
std::int64_t held_channels(const Buffer& buffer, const Shape& shape) {
  const auto pixels = static_cast<std::size_t>(shape.n * shape.h * shape.w);
  return static_cast<std::int64_t>(buffer.bytes / (pixels * bytes_of(buffer.dtype)));
}

// Where the factors are among the uses of a step that normalises its input.
constexpr std::size_t kFactorsUse = 3;

}  // namespace

std::string text_of(const ConvProblem& p) {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  std::string text(name_of(p.kind));
  text += " " + number(p.n) + "x" + number(p.h) + "x" + number(p.w) + "x" + number(p.c) + " to " +
          number(p.out_h) + "x" + number(p.out_w) + "x" + number(p.out_c) + ", kernel " + number(p.kernel) +
          ", stride " + number(p.stride) + ", padding " + number(p.padding);
  if (p.groups > 1) text += ", groups " + number(p.groups);
  text += ", " + std::string(name_of(p.dtype));
  if (p.allow_tf32 && p.dtype == DType::f32) text += " as tf32";
  if (p.fusion.normalizes_input) {
    text += ", normalises its input by " + std::string(name_of(p.factors_dtype)) + " factors";
  }
  if (p.fusion.adds_residual) text += ", adds the residual";
  if (p.fusion.gathers_statistics) text += ", gathers statistics";
  return text;
}

bool is_fused(const ConvProblem& problem) {
  return problem.fusion.normalizes_input || problem.fusion.gathers_statistics ||
         problem.kind == StepKind::conv_norm_backward_data;
}

std::shared_ptr<const ConvPlan> ConvEngine::plan(const ConvProblem& problem, std::size_t workspace_limit,
                                                 const std::string& wanted) {
  const std::string text = text_of(problem);
  std::shared_ptr<const ConvPlan>& known = plans_[{text, workspace_limit, wanted}];
  if (known) return known;
  const std::unique_ptr<ConvCandidates> listed = candidates(problem, workspace_limit);
  for (std::size_t i = 0; i < listed->size() && !known && !wanted.empty(); ++i)
    if (listed->engine(i) == wanted) known = listed->build(i);
  for (std::size_t i = 0; i < listed->size() && !known; ++i)
    if (listed->engine(i) != wanted) known = listed->build(i);
  if (known) return known;
  throw Error(ExitCode::internal,
              library() + std::string(kNoEngine) + text + " within " + std::to_string(workspace_limit >> 20) +
                  " MiB of workspace" +
                  (is_fused(problem) ? "; --fusion off does without it" : "; try another precision"));
}

bool runs_on_engine(const Graph& graph, const Step& step) {
  switch (step.kind) {
    case StepKind::conv_forward:
    case StepKind::conv_backward_data:
    case StepKind::conv_backward_weights:
    case StepKind::conv_norm_backward_data:
      return !is_depthwise(graph, std::get<Conv>(graph.ops[step.op]));
    default:
      return false;
  }
}

ConvProblem conv_problem(const Graph& graph, const Program& program, const Step& step) {
  const Conv& op = std::get<Conv>(graph.ops[step.op]);
  const Shape &in = graph.values[op.in].shape, &out = graph.values[op.out].shape;
  const auto buffer = [&](std::size_t use) -> const Buffer& {
    return program.buffers[step.uses.at(use).buffer];
  };
  const Buffer& input = buffer(input_use(step.kind));
  ConvProblem problem{.kind = step.kind,
                      .n = in.n,
                      .h = in.h,
                      .w = in.w,
                      .c = held_channels(input, in),
                      .out_h = out.h,
                      .out_w = out.w,
                      .out_c = out.c,
                      .kernel = op.kernel,
                      .stride = op.stride,
                      .padding = op.padding,
                      .groups = op.groups,
                      .dtype = input.dtype,
                      .allow_tf32 = program.allow_tf32,
                      .fusion = step.fusion};
  if (step.fusion.normalizes_input) problem.factors_dtype = buffer(kFactorsUse).dtype;
  return problem;
}

Finish prepare_conv(Context& context, Step& step) {
  // describe() leaves the most that an engine may take.
  const ConvProblem problem = conv_problem(context.graph, context.program, step);
  const std::shared_ptr<const ConvPlan> plan =
      context.convolutions.plan(problem, step.workspace_bytes, step.engine);
  step.workspace_bytes = plan->workspace_bytes();
  step.engine = plan->engine();
  std::vector<BufferId> buffers;
  for (const BufferUse& use : step.uses) buffers.push_back(use.buffer);
  return [plan, buffers, lane = step.lane, stream = context.stream](const Arena& arena) -> ComputeFn {
    std::vector<std::byte*> operands;
    for (const BufferId buffer : buffers) operands.push_back(arena.data(buffer));
    return [plan, operands, stream, workspace = arena.workspace(lane)] {
      plan->run(stream, operands, workspace);
    };
  };
}

}  // namespace plumb::cuda
