// Max and global average pooling by oneDNN.
#include <tuple>

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
  memory::dims strides, kernel, padding;
  memory::dims padding_after;  // at the bottom and right: gives the output its extent
};

// Gradients use the layouts of their values.
Problem problem_of(Context& context, const Instruction& instruction) {
  const Pool& op = context.op<Pool>(instruction);
  const Shape &from = context.graph.values[op.in].shape, &to = context.graph.values[op.out].shape;
  const BufferId value = context.tensors().values[op.in];
  const DType dtype = context.dtype(value);
  return {
      .kind = op.kind == Pool::Kind::max ? algorithm::pooling_max : algorithm::pooling_avg_exclude_padding,
      .in = context.settle(value, plain_layout(nchw(from), dtype)),
      .out = any_layout(nchw(to), dtype),
      .strides = {op.stride, op.stride},
      .kernel = {op.kernel, op.kernel},
      .padding = {op.padding, op.padding},
      .padding_after = {(to.h - 1) * op.stride + op.kernel - from.h - op.padding,
                        (to.w - 1) * op.stride + op.kernel - from.w - op.padding}};
}

// The arguments behind the tensors; oneDNN 3 adds a dilation.
auto windows_of(const Problem& p) {
  if constexpr (kOneDnn2<pooling_forward>)
    return std::tuple(p.strides, p.kernel, p.padding, p.padding_after);
  else
    return std::tuple(p.strides, p.kernel, memory::dims{0, 0}, p.padding, p.padding_after);
}

pooling_forward::primitive_desc forward_descriptor(const Context& context, const Problem& p) {
  return std::apply(
      [&](const auto&... window) {
        return describe_primitive<pooling_forward>(context.engine, dnnl::prop_kind::forward_training, p.kind,
                                                   p.in, p.out, window...);
      },
      windows_of(p));
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const PoolForward& pool) {
  const Problem p = problem_of(context, instruction);
  const auto descriptor = forward_descriptor(context, p);
  Call call(context, instruction);
  call.input(DNNL_ARG_SRC, pool.in, p.in);
  call.output(DNNL_ARG_DST, pool.out, descriptor.dst_desc());
  if (pool.argmax) call.raw(DNNL_ARG_WORKSPACE, *pool.argmax, descriptor.workspace_desc());
  return call.finish<pooling_forward>(descriptor);
}

Binder prepare(Context& context, Instruction& instruction, const PoolBackward& pool) {
  const Problem p = problem_of(context, instruction);
  const auto forward = forward_descriptor(context, p);
  const memory::desc out = forward.dst_desc();
  const auto descriptor = std::apply(
      [&](const auto&... window) {
        return describe_backward<pooling_backward>(context.engine, forward, p.kind, p.in, out, window...);
      },
      windows_of(p));
  Call call(context, instruction);
  call.input(DNNL_ARG_DIFF_DST, pool.d_out, out);
  call.output(DNNL_ARG_DIFF_SRC, pool.d_in, p.in);
  if (pool.argmax) call.raw(DNNL_ARG_WORKSPACE, *pool.argmax, descriptor.workspace_desc());
  return call.finish<pooling_backward>(descriptor);
}

}  // namespace plumb::cpu
