// Convolution instructions: the engine's problem and the operands of each.
#include "kernels/cuda/vendors/conv.h"

#include <array>

#include "base/error.h"
#include "kernels/cuda/binding.h"
#include "kernels/cuda/plan/blocks.h"
#include "kernels/cuda/plan/depthwise_shape.h"
#include "kernels/cuda/plan/stem_shape.h"

namespace plumb::cuda {
namespace {

// By ConvPass.
constexpr std::array<std::string_view, 4> kPassNames{ConvForward::kName, ConvBackwardData::kName,
                                                     ConvBackwardWeights::kName, ConvNormBackwardData::kName};

// Stored channels, padding included: dims are logical.
std::int64_t held_channels(const Buffer& buffer, const Shape& shape) {
  const auto pixels = static_cast<std::size_t>(shape.n * shape.h * shape.w);
  return static_cast<std::int64_t>(buffer.bytes / (pixels * bytes_of(buffer.dtype)));
}

}  // namespace

std::string text_of(const ConvProblem& p) {
  std::string text = fmt::format("{} {}x{}x{}x{} to {}x{}x{}, kernel {}, stride {}, padding {}",
                                 kPassNames[static_cast<std::size_t>(p.pass)], p.n, p.h, p.w, p.c, p.out_h,
                                 p.out_w, p.out_c, p.kernel, p.stride, p.padding);
  if (p.groups > 1) text += fmt::format(", groups {}", p.groups);
  text += fmt::format(", {}", name_of(p.dtype));
  if (p.allow_tf32 && p.dtype == DType::f32) text += " as tf32";
  if (p.fusion.normalizes_input)
    text += fmt::format(", normalizes its input by {} factors", name_of(p.scale_shift_dtype));
  if (p.fusion.gathers_statistics) text += ", gathers statistics";
  return text;
}

bool is_fused(const ConvProblem& problem) {
  return problem.fusion.normalizes_input || problem.fusion.gathers_statistics ||
         problem.pass == ConvPass::norm_backward_data;
}

bool is_stem(const ConvProblem& p) {
  const bool is_pass = p.pass == ConvPass::forward || p.pass == ConvPass::backward_weights;
  return is_pass && p.dtype != DType::f32 && p.c == kStemChannels && p.w % 2 == 0 &&
         p.out_c == kStemOutputs && p.kernel == kStemKernel && p.stride == kStemStride &&
         p.padding == kStemPadding && p.groups == 1 && !p.fusion.normalizes_input;
}

std::shared_ptr<const ConvPlan> ConvEngine::plan(const ConvProblem& problem, std::size_t workspace_limit,
                                                 const std::string& wanted) const {
  const std::string text = text_of(problem);
  std::weak_ptr<const ConvPlan>& known = shared[{text, workspace_limit, wanted}];
  if (std::shared_ptr<const ConvPlan> plan = known.lock()) return plan;
  ConvCandidates listed = candidates(problem, workspace_limit);
  std::optional<ConvPlan> built;
  for (const bool is_wanted : {true, false})
    for (std::size_t i = 0; i < listed.engines.size() && !built; ++i)
      if ((listed.engines[i].engine == wanted) == is_wanted) built = listed.build(i);
  if (built) {
    const auto plan = std::make_shared<const ConvPlan>(*std::move(built));
    known = plan;
    return plan;
  }
  throw Error(ExitCode::internal, "{} has no engine for {} within {} MiB of workspace{}{}; {}", library, text,
              workspace_limit >> 20, listed.failure.empty() ? "" : ": ", listed.failure,
              is_fused(problem) ? "--fusion off does without it" : "try another precision");
}

std::optional<ConvProblem> conv_problem(const Graph& graph, const Program& program,
                                        const Instruction& instruction) {
  const Conv* op = instruction.op == kNone ? nullptr : std::get_if<Conv>(&graph.ops[instruction.op]);
  if (!op || is_depthwise(graph, *op)) return std::nullopt;
  const Shape &in = graph.values[op->in].shape, &out = graph.values[op->out].shape;
  ConvProblem problem{.n = in.n,
                      .h = in.h,
                      .w = in.w,
                      .out_h = out.h,
                      .out_w = out.w,
                      .out_c = out.c,
                      .kernel = op->kernel,
                      .stride = op->stride,
                      .padding = op->padding,
                      .groups = op->groups,
                      .allow_tf32 = program.allow_tf32};
  BufferId input = kNone;  // the convolution's input, or its gradient
  std::optional<Read> scale_shift;
  if (const auto* forward = instruction.as<ConvForward>()) {
    input = forward->in;
    scale_shift = forward->scale_shift;
    problem.fusion.gathers_statistics = forward->sums.has_value();
  } else if (const auto* weights = instruction.as<ConvBackwardWeights>()) {
    problem.pass = ConvPass::backward_weights;
    input = weights->in;
    scale_shift = weights->scale_shift;
  } else if (const auto* norm = instruction.as<ConvNormBackwardData>()) {
    problem.pass = ConvPass::norm_backward_data;
    input = norm->norm_in;
  } else if (const auto* data = instruction.as<ConvBackwardData>(); data && !data->relu_mask) {
    problem.pass = ConvPass::backward_data;
    input = data->d_in;
  } else {  // not a convolution, or by our own kernel (block_end.h)
    return std::nullopt;
  }
  problem.fusion.normalizes_input = scale_shift.has_value();
  if (scale_shift) problem.scale_shift_dtype = program.buffers[*scale_shift].dtype;
  problem.c = held_channels(program.buffers[input], in);
  problem.dtype = program.buffers[input].dtype;
  return problem;
}

Binder prepare_conv(Context& context, Instruction& instruction) {
  // describe() sets the workspace limit.
  const ConvProblem problem = conv_problem(context.graph, context.program, instruction).value();
  const std::shared_ptr<const ConvPlan> plan =
      context.convolutions.plan(problem, instruction.workspace_bytes, instruction.engine);
  instruction.workspace_bytes = plan->workspace_bytes;
  instruction.engine = plan->engine;
  std::vector<BufferId> buffers;
  for (const BufferUse& use : instruction.uses()) buffers.push_back(use.buffer);
  return [plan, buffers, lane = instruction.lane, stream = context.stream](const Arena& arena) -> ComputeFn {
    std::vector<std::byte*> operands;
    for (const BufferId buffer : buffers) operands.push_back(arena.data(buffer));
    return [plan, operands, stream, workspace = arena.workspace(lane)] {
      plan->run(stream, operands, workspace);
    };
  };
}

}  // namespace plumb::cuda
