// Batch norm by oneDNN (with the ReLU inside where no residual comes between), running statistics by
// ourselves.
#include <utility>

#include "kernels/cpu/binding.h"
#include "kernels/cpu/onednn.h"

namespace plumb::cpu {
namespace {

using dnnl::batch_normalization_backward;
using dnnl::batch_normalization_forward;
using dnnl::memory;
using dnnl::normalization_flags;

normalization_flags flags_of(const Norm& op) {
  const auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
  const bool relu_inside = op.activation == Activation::relu && !op.residual;
  return relu_inside ? flags | normalization_flags::fuse_norm_relu : flags;
}

batch_normalization_forward::primitive_desc forward_descriptor(const Context& context, const Norm& op,
                                                               const memory::desc& layout) {
  const auto kind = dnnl::prop_kind::forward_training;
  const auto epsilon = static_cast<float>(op.epsilon);
  if constexpr (kOneDnn2<>)
    return describe_primitive<batch_normalization_forward>(context.engine, user_scratchpad(), kind, layout,
                                                           epsilon, flags_of(op));
  else
    return describe_primitive<batch_normalization_forward>(context.engine, user_scratchpad(), kind, layout,
                                                           layout, epsilon, flags_of(op));
}

batch_normalization_backward::primitive_desc backward_descriptor(const Context& context, const Norm& op,
                                                                 const memory::desc& layout) {
  const auto kind = dnnl::prop_kind::backward;
  const auto epsilon = static_cast<float>(op.epsilon);
  const auto hint = forward_descriptor(context, op, layout);
  if constexpr (kOneDnn2<>)
    return describe_backward<batch_normalization_backward>(context.engine, user_scratchpad(), hint, kind,
                                                           layout, layout, epsilon, flags_of(op));
  else
    return describe_backward<batch_normalization_backward>(context.engine, user_scratchpad(), hint, kind,
                                                           layout, layout, layout, epsilon, flags_of(op));
}

// running = (1 - momentum) * running + momentum * batch; the variance without bias, n / (n - 1), where n > 1
// elements share a channel (PyTorch, aten/src/ATen/native/Normalization.cpp; n = 1 keeps the biased one).
void update_running(float* running, const float* batch, std::size_t channels, float momentum,
                    float correction) {
  for (std::size_t c = 0; c < channels; ++c)
    running[c] = (1 - momentum) * running[c] + momentum * correction * batch[c];
}

Finish forward(Context& context, Step& step, const Norm& op) {
  const Shape& shape = context.graph.values[op.in].shape;
  const memory::desc layout = context.settle(step.uses[0].buffer, plain_layout(nchw(shape)));
  const memory::desc channels = plain_layout({shape.c});
  const auto descriptor = forward_descriptor(context, op, layout);
  for (std::size_t use : {1, 2, 3, 4, 6, 7}) context.settle(step.uses[use].buffer, channels);
  Call call(context, step);
  call.input(DNNL_ARG_SRC, step.uses[0].buffer, layout);
  call.input(DNNL_ARG_SCALE, step.uses[1].buffer, channels);
  call.input(DNNL_ARG_SHIFT, step.uses[2].buffer, channels);
  call.output(DNNL_ARG_DST, step.uses[5].buffer, layout);
  call.output(DNNL_ARG_MEAN, step.uses[6].buffer, channels);
  call.output(DNNL_ARG_VARIANCE, step.uses[7].buffer, channels);
  if (step.uses.size() > 8) call.raw(DNNL_ARG_WORKSPACE, step.uses[8].buffer, descriptor.workspace_desc());
  call.scratchpad(descriptor.scratchpad_desc());
  Finish normalise = call.finish(batch_normalization_forward(descriptor));

  const auto per_channel = static_cast<float>(shape.n * shape.h * shape.w);
  const float correction = per_channel > 1 ? per_channel / (per_channel - 1) : 1;
  return [=, uses = step.uses, momentum = static_cast<float>(op.momentum),
          count = static_cast<std::size_t>(shape.c)](const Arena& arena) -> ComputeFn {
    return [=, run = normalise(arena), running_mean = arena.floats(uses[3].buffer),
            running_variance = arena.floats(uses[4].buffer), mean = arena.floats(uses[6].buffer),
            variance = arena.floats(uses[7].buffer)] {
      run();
      update_running(running_mean, mean, count, momentum, 1);
      update_running(running_variance, variance, count, momentum, correction);
    };
  };
}

Finish backward(Context& context, Step& step, const Norm& op) {
  const Shape& shape = context.graph.values[op.in].shape;
  const memory::desc layout = context.settle(step.uses[0].buffer, plain_layout(nchw(shape)));
  const memory::desc channels = plain_layout({shape.c});
  const auto descriptor = backward_descriptor(context, op, layout);
  Call call(context, step);
  call.input(DNNL_ARG_SRC, step.uses[0].buffer, layout);
  call.input(DNNL_ARG_DIFF_DST, step.uses[1].buffer, layout);
  call.input(DNNL_ARG_SCALE, step.uses[2].buffer, channels);
  if constexpr (kOneDnn2<>) call.input(DNNL_ARG_SHIFT, step.uses[3].buffer, channels);
  call.input(DNNL_ARG_MEAN, step.uses[4].buffer, channels);
  call.input(DNNL_ARG_VARIANCE, step.uses[5].buffer, channels);
  call.output(DNNL_ARG_DIFF_SRC, step.uses[6].buffer, layout);
  call.output(DNNL_ARG_DIFF_SCALE, step.uses[7].buffer, channels);
  call.output(DNNL_ARG_DIFF_SHIFT, step.uses[8].buffer, channels);
  if (step.uses.size() > 9) call.raw(DNNL_ARG_WORKSPACE, step.uses[9].buffer, descriptor.workspace_desc());
  call.scratchpad(descriptor.scratchpad_desc());
  return call.finish(batch_normalization_backward(descriptor));
}

}  // namespace

Finish prepare_norm(Context& context, Step& step) {
  const Norm& op = std::get<Norm>(context.graph.ops[step.op]);
  return step.kind == StepKind::norm_forward ? forward(context, step, op) : backward(context, step, op);
}

}  // namespace plumb::cpu
