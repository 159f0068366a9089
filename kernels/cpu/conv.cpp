// Convolutions by oneDNN, every layout its own choice.
#include "kernels/cpu/binding.h"
#include "kernels/cpu/onednn.h"

namespace plumb::cpu {
namespace {

using dnnl::algorithm;
using dnnl::convolution_backward_data;
using dnnl::convolution_backward_weights;
using dnnl::convolution_forward;

// Logical extents of a convolution; weights are [groups, out/groups, in/groups, k, k] where groups > 1.
struct Problem {
  dnnl::memory::desc in, weight, out;
  dnnl::memory::dims strides, padding;
};

std::vector<std::int64_t> weight_dims(const Graph& graph, const Conv& op) {
  std::vector<std::int64_t> dims = graph.parameters[op.weight].dims;
  if (op.groups > 1) {
    dims[0] /= op.groups;
    dims.insert(dims.begin(), op.groups);
  }
  return dims;
}

Problem problem_of(const Graph& graph, const Conv& op) {
  return {.in = any_layout(nchw(graph.values[op.in].shape)),
          .weight = any_layout(weight_dims(graph, op)),
          .out = any_layout(nchw(graph.values[op.out].shape)),
          .strides = {op.stride, op.stride},
          .padding = {op.padding, op.padding}};
}

convolution_forward::primitive_desc forward_descriptor(const Context& context, const Problem& problem) {
  return describe_primitive<convolution_forward>(
      context.engine, user_scratchpad(), dnnl::prop_kind::forward_training, algorithm::convolution_direct,
      problem.in, problem.weight, problem.out, problem.strides, problem.padding, problem.padding);
}

Finish forward(Context& context, Step& step, const Problem& problem) {
  const auto descriptor = forward_descriptor(context, problem);
  Call call(context, step);
  call.input(DNNL_ARG_SRC, step.uses[0].buffer, descriptor.src_desc());
  call.input(DNNL_ARG_WEIGHTS, step.uses[1].buffer, descriptor.weights_desc());
  call.output(DNNL_ARG_DST, step.uses[2].buffer, descriptor.dst_desc());
  call.scratchpad(descriptor.scratchpad_desc());
  return call.finish(convolution_forward(descriptor));
}

Finish backward_data(Context& context, Step& step, const Problem& problem) {
  const auto descriptor = describe_backward<convolution_backward_data>(
      context.engine, user_scratchpad(), forward_descriptor(context, problem), algorithm::convolution_direct,
      problem.in, problem.weight, problem.out, problem.strides, problem.padding, problem.padding);
  Call call(context, step);
  call.input(DNNL_ARG_DIFF_DST, step.uses[0].buffer, descriptor.diff_dst_desc());
  call.input(DNNL_ARG_WEIGHTS, step.uses[1].buffer, descriptor.weights_desc());
  call.output(DNNL_ARG_DIFF_SRC, step.uses[2].buffer, descriptor.diff_src_desc());
  call.scratchpad(descriptor.scratchpad_desc());
  return call.finish(convolution_backward_data(descriptor));
}

Finish backward_weights(Context& context, Step& step, const Problem& problem, ParameterId weight) {
  const auto descriptor = describe_backward<convolution_backward_weights>(
      context.engine, user_scratchpad(), forward_descriptor(context, problem), algorithm::convolution_direct,
      problem.in, problem.weight, problem.out, problem.strides, problem.padding, problem.padding);
  // The update adds gradients to masters element by element: they share the masters' layout.
  context.settle(step.uses[2].buffer,
                 context.settle(context.parameters[weight].master, descriptor.diff_weights_desc()));
  Call call(context, step);
  call.input(DNNL_ARG_SRC, step.uses[0].buffer, descriptor.src_desc());
  call.input(DNNL_ARG_DIFF_DST, step.uses[1].buffer, descriptor.diff_dst_desc());
  call.output(DNNL_ARG_DIFF_WEIGHTS, step.uses[2].buffer, descriptor.diff_weights_desc());
  call.scratchpad(descriptor.scratchpad_desc());
  return call.finish(convolution_backward_weights(descriptor));
}

}  // namespace

Finish prepare_conv(Context& context, Step& step) {
  const Conv& op = std::get<Conv>(context.graph.ops[step.op]);
  const Problem problem = problem_of(context.graph, op);
  switch (step.kind) {
    case StepKind::conv_forward:
      return forward(context, step, problem);
    case StepKind::conv_backward_data:
      return backward_data(context, step, problem);
    default:
      return backward_weights(context, step, problem, op.weight);
  }
}

}  // namespace plumb::cpu
