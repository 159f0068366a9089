// The dense layer by oneDNN's inner product. The input keeps its [n, c, h, w] dims and its layout; the weight
// is [out, c, h, w] to match, which in row-major order equals the public [out, c * h * w].
#include "kernels/cpu/binding.h"
#include "kernels/cpu/onednn.h"

namespace plumb::cpu {
namespace {

using dnnl::inner_product_backward_data;
using dnnl::inner_product_backward_weights;
using dnnl::inner_product_forward;
using dnnl::memory;

struct Problem {
  memory::desc in, weight, bias, out;
};

// `in` and `weight` in their current layouts: oneDNN's GEMM takes both, so nothing is copied.
Problem problem_of(const Context& context, const Instruction& instruction) {
  const Dense& op = context.op<Dense>(instruction);
  const Graph& graph = context.graph;
  const std::vector<std::int64_t>& dims = graph.parameters[op.weight].dims;
  const auto held_or = [&](BufferId buffer, memory::desc otherwise) {
    return context.layouts[buffer] ? *context.layouts[buffer] : otherwise;
  };
  const memory::desc in =
      held_or(context.tensors().values[op.in], plain_layout(nchw(graph.values[op.in].shape)));
  const bool rows = dims_of(in).size() == 2;  // output of another dense layer
  std::vector<std::int64_t> weight_dims = dims;
  if (!rows) {
    weight_dims = nchw(graph.values[op.in].shape);
    weight_dims[0] = dims[0];
  }
  return {.in = in,
          .weight = held_or(context.tensors().parameters[op.weight].master, any_layout(weight_dims)),
          .bias = plain_layout({dims[0]}),
          .out = plain_layout({graph.values[op.out].shape.n, dims[0]})};
}

inner_product_forward::primitive_desc forward_descriptor(const Context& context, const Problem& p) {
  return describe_primitive<inner_product_forward>(
      context.engine, user_scratchpad(), dnnl::prop_kind::forward_training, p.in, p.weight, p.bias, p.out);
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const DenseForward& dense) {
  const Problem p = problem_of(context, instruction);
  const auto descriptor = forward_descriptor(context, p);
  Call call(context, instruction);
  call.input(DNNL_ARG_SRC, dense.in, descriptor.src_desc());
  call.input(DNNL_ARG_WEIGHTS, dense.weight, descriptor.weights_desc());
  call.input(DNNL_ARG_BIAS, dense.bias, p.bias);
  call.output(DNNL_ARG_DST, dense.out, p.out);
  return call.finish<inner_product_forward>(descriptor);
}

Binder prepare(Context& context, Instruction& instruction, const DenseBackwardWeights& dense) {
  const Problem p = problem_of(context, instruction);
  const auto descriptor = describe_backward<inner_product_backward_weights>(
      context.engine, user_scratchpad(), forward_descriptor(context, p), p.in, p.weight, p.bias, p.out);
  Call call(context, instruction);
  call.input(DNNL_ARG_SRC, dense.in, p.in);
  call.input(DNNL_ARG_DIFF_DST, dense.d_out, p.out);
  call.output(DNNL_ARG_DIFF_WEIGHTS, dense.d_weight, p.weight);
  call.output(DNNL_ARG_DIFF_BIAS, dense.d_bias, p.bias);
  return call.finish<inner_product_backward_weights>(descriptor);
}

Binder prepare(Context& context, Instruction& instruction, const DenseBackwardData& dense) {
  const Problem p = problem_of(context, instruction);
  const auto descriptor = describe_backward<inner_product_backward_data>(
      context.engine, user_scratchpad(), forward_descriptor(context, p), p.in, p.weight, p.out);
  Call call(context, instruction);
  call.input(DNNL_ARG_DIFF_DST, dense.d_out, p.out);
  call.input(DNNL_ARG_WEIGHTS, dense.weight, p.weight);
  call.output(DNNL_ARG_DIFF_SRC, dense.d_in, p.in);
  return call.finish<inner_product_backward_data>(descriptor);
}

}  // namespace plumb::cpu
