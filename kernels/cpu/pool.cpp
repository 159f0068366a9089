// Max and global average pooling by oneDNN.
#include "kernels/cpu/binding.h"
#include "kernels/cpu/onednn.h"

namespace plumb::cpu {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::pooling_backward;
using dnnl::pooling_forward;

struct Problem {
  algorithm kind;
  memory::desc in, out;
  memory::dims strides, kernel, dilation, padding;
};

Problem problem_of(const Graph& graph, const Pool& op, const memory::desc& in) {
  const bool max = op.kind == Pool::Kind::max;
  return {.kind = max ? algorithm::pooling_max : algorithm::pooling_avg_exclude_padding,
          .in = in,
          .out = any_layout(nchw(graph.values[op.out].shape)),
          .strides = {op.stride, op.stride},
          .kernel = {op.kernel, op.kernel},
          .dilation = {0, 0},
          .padding = {op.padding, op.padding}};
}

// Padding at the bottom and right that gives the output its extent.
memory::dims padding_after(const Graph& graph, const Pool& op) {
  const Shape& in = graph.values[op.in].shape;
  const Shape& out = graph.values[op.out].shape;
  return {(out.h - 1) * op.stride + op.kernel - in.h - op.padding,
          (out.w - 1) * op.stride + op.kernel - in.w - op.padding};
}

pooling_forward::primitive_desc forward_descriptor(const Context& context, const Pool& op,
                                                   const memory::desc& in) {
  const Problem p = problem_of(context.graph, op, in);
  const memory::dims after = padding_after(context.graph, op);
  const auto kind = dnnl::prop_kind::forward_training;
  if constexpr (kOneDnn2<pooling_forward>)
    return describe_primitive<pooling_forward>(context.engine, user_scratchpad(), kind, p.kind, p.in, p.out,
                                               p.strides, p.kernel, p.padding, after);
  else
    return describe_primitive<pooling_forward>(context.engine, user_scratchpad(), kind, p.kind, p.in, p.out,
                                               p.strides, p.kernel, p.dilation, p.padding, after);
}

pooling_backward::primitive_desc backward_descriptor(const Context& context, const Pool& op,
                                                     const memory::desc& in, const memory::desc& out) {
  const Problem p = problem_of(context.graph, op, in);
  const memory::dims after = padding_after(context.graph, op);
  const auto hint = forward_descriptor(context, op, in);
  if constexpr (kOneDnn2<pooling_backward>)
    return describe_backward<pooling_backward>(context.engine, user_scratchpad(), hint, p.kind, in, out,
                                               p.strides, p.kernel, p.padding, after);
  else
    return describe_backward<pooling_backward>(context.engine, user_scratchpad(), hint, p.kind, in, out,
                                               p.strides, p.kernel, p.dilation, p.padding, after);
}

const Pool& pool_of(const Context& context, const Instruction& instruction) {
  return std::get<Pool>(context.graph.ops[instruction.op]);
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const PoolForward& pool) {
  const Pool& op = pool_of(context, instruction);
  const memory::desc in = context.settle(pool.in, plain_layout(nchw(context.graph.values[op.in].shape)));
  const auto descriptor = forward_descriptor(context, op, in);
  Call call(context, instruction);
  call.input(DNNL_ARG_SRC, pool.in, in);
  call.output(DNNL_ARG_DST, pool.out, descriptor.dst_desc());
  if (pool.argmax) call.raw(DNNL_ARG_WORKSPACE, *pool.argmax, descriptor.workspace_desc());
  return call.finish<pooling_forward>(descriptor);
}

// Gradients use the layouts of their values.
Binder prepare(Context& context, Instruction& instruction, const PoolBackward& pool) {
  const Pool& op = pool_of(context, instruction);
  const memory::desc in =
      context.settle(context.tensors().values[op.in], plain_layout(nchw(context.graph.values[op.in].shape)));
  const memory::desc out = forward_descriptor(context, op, in).dst_desc();
  const auto descriptor = backward_descriptor(context, op, in, out);
  Call call(context, instruction);
  call.input(DNNL_ARG_DIFF_DST, pool.d_out, out);
  call.output(DNNL_ARG_DIFF_SRC, pool.d_in, in);
  if (pool.argmax) call.raw(DNNL_ARG_WORKSPACE, *pool.argmax, descriptor.workspace_desc());
  return call.finish<pooling_backward>(descriptor);
}

}  // namespace plumb::cpu
