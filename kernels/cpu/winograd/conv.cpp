// Convolutions by the loops of winograd_loops.h, which take one layout for all passes.
#include "kernels/cpu/binding.h"
#include "kernels/cpu/element_types.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/winograd/loops.h"

namespace plumb::cpu {
namespace {

struct WinogradProblem {
  WinogradPlan plan;
  int threads = 1;
  DType dtype = DType::f32;  // of images and weights
  dnnl::memory::desc in, weight, d_weight, out;
};

WinogradProblem winograd_problem_of(const Context& context, const Instruction& instruction, ConvPass pass) {
  const Conv& op = context.op<Conv>(instruction);
  const Graph& graph = context.graph;
  const DType dtype = context.dtype(context.tensors().values[op.out]);
  const int lanes = context.limits.winograd_lanes, threads = context.limits.threads;
  const auto images = lanes == 16 ? dnnl::memory::format_tag::nChw16c : dnnl::memory::format_tag::nChw8c;
  const auto weights =
      lanes == 16 ? dnnl::memory::format_tag::OIhw16i16o : dnnl::memory::format_tag::OIhw8i8o;
  const auto images_of = [&](ValueId value) {
    return dnnl::memory::desc(nchw(graph.values[value].shape), data_type_of(dtype), images);
  };
  const auto weight_in = [&](DType type) {
    return dnnl::memory::desc(graph.parameters[op.weight].dims, data_type_of(type), weights);
  };
  return {.plan = plan_winograd(conv_shape(graph, op), pass, lanes, threads),
          .threads = threads,
          .dtype = dtype,
          .in = images_of(op.in),
          .weight = weight_in(dtype),
          .d_weight = weight_in(DType::f32),
          .out = images_of(op.out)};
}

// Forward, or backward-data from the gradient of the output to that of the input.
Binder convolve(Context& context, Instruction& instruction, ConvPass pass, Read from, Read weight,
                BufferId into) {
  const WinogradProblem p = winograd_problem_of(context, instruction, pass);
  const bool is_forward = pass == ConvPass::forward;
  Call call(context, instruction);
  const auto read = call.input(from, is_forward ? p.in : p.out), factors = call.input(weight, p.weight);
  const auto written = call.output(into, is_forward ? p.out : p.in);
  const auto workspace = call.scratchpad(plain_layout({p.plan.floats}));
  return with_type_of(p.dtype, [&]<typename Element>(Element) {
    return call.finish([=](const BoundOperands& at) {
      winograd_convolve(p.plan, p.threads, at.as<Element>(read), at.as<Element>(factors),
                        at.as<Element>(written), at.as(workspace));
    });
  });
}

Binder sum_weights(Context& context, Instruction& instruction, const ConvBackwardWeights& conv) {
  const WinogradProblem p = winograd_problem_of(context, instruction, ConvPass::backward_weights);
  const BufferId master = context.tensors().parameters[context.op<Conv>(instruction).weight].master;
  context.settle(conv.d_weight, context.settle(master, p.d_weight));
  Call call(context, instruction);
  const auto in = call.input(DNNL_ARG_SRC, conv.in, p.in);
  const auto d_out = call.input(DNNL_ARG_DIFF_DST, conv.d_out, p.out);
  const auto d_weight = call.output(DNNL_ARG_DIFF_WEIGHTS, conv.d_weight, p.d_weight);
  const auto workspace = call.scratchpad(plain_layout({p.plan.floats}));
  return with_type_of(p.dtype, [&]<typename Element>(Element) {
    return call.finish([=](const BoundOperands& at) {
      winograd_backward_weights(p.plan, p.threads, at.as<Element>(in), at.as<Element>(d_out), at.as(d_weight),
                                at.as(workspace));
    });
  });
}

}  // namespace

Binder prepare_winograd(Context& context, Instruction& instruction) {
  if (const auto* conv = instruction.as<ConvForward>())
    return convolve(context, instruction, ConvPass::forward, conv->in, conv->weight, conv->out);
  if (const auto* conv = instruction.as<ConvBackwardData>())
    return convolve(context, instruction, ConvPass::backward_data, conv->d_out, conv->weight, conv->d_in);
  return sum_weights(context, instruction, std::get<ConvBackwardWeights>(instruction.operation));
}

}  // namespace plumb::cpu
