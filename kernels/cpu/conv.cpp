// Convolutions by oneDNN, in the layouts that oneDNN chooses.
#include <stdexcept>
#include <type_traits>

#include "kernels/cpu/binding.h"
#include "kernels/cpu/onednn.h"

namespace plumb::cpu {
namespace {

using dnnl::algorithm;
using dnnl::convolution_backward_data;
using dnnl::convolution_backward_weights;
using dnnl::convolution_forward;

// Logical extents of a convolution; weights are [groups, out/groups, in/groups, k, k] if groups > 1.
struct Problem {
  dnnl::memory::desc in, weight, d_weight, out;
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

Problem problem_of(const Context& context, const Instruction& instruction) {
  const Graph& graph = context.graph;
  const Conv& op = context.op<Conv>(instruction);
  const DType dtype = context.dtype(context.tensors().values[op.out]);
  return {.in = any_layout(nchw(graph.values[op.in].shape), dtype),
          .weight = any_layout(weight_dims(graph, op), dtype),
          .d_weight = any_layout(weight_dims(graph, op)),
          .out = any_layout(nchw(graph.values[op.out].shape), dtype),
          .strides = {op.stride, op.stride},
          .padding = {op.padding, op.padding}};
}

convolution_forward::primitive_desc forward_descriptor(const dnnl::engine& engine, const Problem& problem) {
  return describe_primitive<convolution_forward>(
      engine, dnnl::prop_kind::forward_training, algorithm::convolution_direct, problem.in, problem.weight,
      problem.out, problem.strides, problem.padding, problem.padding);
}

template <typename Primitive>
typename Primitive::primitive_desc backward_descriptor(const dnnl::engine& engine, const Problem& problem) {
  constexpr bool kOfWeights = std::is_same_v<Primitive, convolution_backward_weights>;
  return describe_backward<Primitive>(engine, forward_descriptor(engine, problem),
                                      algorithm::convolution_direct, problem.in,
                                      kOfWeights ? problem.d_weight : problem.weight, problem.out,
                                      problem.strides, problem.padding, problem.padding);
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const ConvForward& conv) {
  if (conv.scale_shift || conv.sums)
    throw std::logic_error(instruction.name + " is fused, which no CPU runs");
  const auto descriptor = forward_descriptor(context.engine, problem_of(context, instruction));
  Call call(context, instruction);
  call.input(DNNL_ARG_SRC, conv.in, descriptor.src_desc());
  call.input(DNNL_ARG_WEIGHTS, conv.weight, descriptor.weights_desc());
  call.output(DNNL_ARG_DST, conv.out, descriptor.dst_desc());
  return call.finish<convolution_forward>(descriptor);
}

Binder prepare(Context& context, Instruction& instruction, const ConvBackwardData& conv) {
  const auto descriptor =
      backward_descriptor<convolution_backward_data>(context.engine, problem_of(context, instruction));
  Call call(context, instruction);
  call.input(DNNL_ARG_DIFF_DST, conv.d_out, descriptor.diff_dst_desc());
  call.input(DNNL_ARG_WEIGHTS, conv.weight, descriptor.weights_desc());
  call.output(DNNL_ARG_DIFF_SRC, conv.d_in, descriptor.diff_src_desc());
  return call.finish<convolution_backward_data>(descriptor);
}

Binder prepare(Context& context, Instruction& instruction, const ConvBackwardWeights& conv) {
  const auto descriptor =
      backward_descriptor<convolution_backward_weights>(context.engine, problem_of(context, instruction));
  // The update is elementwise over gradient and master, so both share one layout.
  const BufferId master = context.tensors().parameters[context.op<Conv>(instruction).weight].master;
  context.settle(conv.d_weight, context.settle(master, descriptor.diff_weights_desc()));
  Call call(context, instruction);
  call.input(DNNL_ARG_SRC, conv.in, descriptor.src_desc());
  call.input(DNNL_ARG_DIFF_DST, conv.d_out, descriptor.diff_dst_desc());
  call.output(DNNL_ARG_DIFF_WEIGHTS, conv.d_weight, descriptor.diff_weights_desc());
  return call.finish<convolution_backward_weights>(descriptor);
}

}  // namespace plumb::cpu
