// Convolutions by the loops of winograd_loops.h, which take one layout for all passes.
#include "kernels/cpu/binding.h"
#include "kernels/cpu/winograd_loops.h"

namespace plumb::cpu {
namespace {

struct WinogradProblem {
  ConvShape shape;
  int lanes = 0, threads = 1;
  dnnl::memory::desc in, weight, out;
};

WinogradProblem winograd_problem_of(const Context& context, const Instruction& instruction) {
  const Conv& op = context.op<Conv>(instruction);
  const auto blocked = [](const std::vector<std::int64_t>& dims, dnnl::memory::format_tag tag) {
    return dnnl::memory::desc(dims, dnnl::memory::data_type::f32, tag);
  };
  const Graph& graph = context.graph;
  const int lanes = winograd_lanes();
  const auto images = lanes == 16 ? dnnl::memory::format_tag::nChw16c : dnnl::memory::format_tag::nChw8c;
  const auto weights =
      lanes == 16 ? dnnl::memory::format_tag::OIhw16i16o : dnnl::memory::format_tag::OIhw8i8o;
  return {.shape = conv_shape(graph, op),
          .lanes = lanes,
          .threads = context.threads,
          .in = blocked(nchw(graph.values[op.in].shape), images),
          .weight = blocked(graph.parameters[op.weight].dims, weights),
          .out = blocked(nchw(graph.values[op.out].shape), images)};
}

Call::Place workspace_of(Call& call, const WinogradPlan& plan) {
  return call.scratchpad(plain_layout({plan.floats}));
}

}  // namespace

Binder prepare_winograd(Context& context, Instruction& instruction, const ConvForward& conv) {
  const WinogradProblem p = winograd_problem_of(context, instruction);
  Call call(context, instruction);
  const auto in = call.input(DNNL_ARG_SRC, conv.in, p.in);
  const auto weight = call.input(DNNL_ARG_WEIGHTS, conv.weight, p.weight);
  const auto out = call.output(DNNL_ARG_DST, conv.out, p.out);
  const auto workspace = workspace_of(call, plan_winograd(p.shape, p.lanes, p.threads));
  return call.finish([=](const BoundOperands& at) {
    winograd_forward(p.shape, p.lanes, p.threads, at.as(in), at.as(weight), at.as(out), at.as(workspace));
  });
}

Binder prepare_winograd(Context& context, Instruction& instruction, const ConvBackwardData& conv) {
  const WinogradProblem p = winograd_problem_of(context, instruction);
  Call call(context, instruction);
  const auto d_out = call.input(DNNL_ARG_DIFF_DST, conv.d_out, p.out);
  const auto weight = call.input(DNNL_ARG_WEIGHTS, conv.weight, p.weight);
  const auto d_in = call.output(DNNL_ARG_DIFF_SRC, conv.d_in, p.in);
  const auto workspace = workspace_of(call, plan_winograd(backward_data_shape(p.shape), p.lanes, p.threads));
  return call.finish([=](const BoundOperands& at) {
    winograd_backward_data(p.shape, p.lanes, p.threads, at.as(d_out), at.as(weight), at.as(d_in),
                           at.as(workspace));
  });
}

Binder prepare_winograd(Context& context, Instruction& instruction, const ConvBackwardWeights& conv) {
  const WinogradProblem p = winograd_problem_of(context, instruction);
  const BufferId master = context.tensors().parameters[context.op<Conv>(instruction).weight].master;
  context.settle(conv.d_weight, context.settle(master, p.weight));
  Call call(context, instruction);
  const auto in = call.input(DNNL_ARG_SRC, conv.in, p.in);
  const auto d_out = call.input(DNNL_ARG_DIFF_DST, conv.d_out, p.out);
  const auto d_weight = call.output(DNNL_ARG_DIFF_WEIGHTS, conv.d_weight, p.weight);
  const auto workspace = workspace_of(call, plan_winograd_weights(p.shape, p.lanes));
  return call.finish([=](const BoundOperands& at) {
    winograd_backward_weights(p.shape, p.lanes, at.as(in), at.as(d_out), at.as(d_weight), at.as(workspace));
  });
}

}  // namespace plumb::cpu
