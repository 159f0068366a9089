// Batch norm with the residual and the activation behind it, by loops of our own: oneDNN's knows neither a
// residual nor a PReLU.
#include "kernels/cpu/binding.h"
#include "kernels/cpu/norm_loops.h"
#include "kernels/cpu/threads.h"

namespace plumb::cpu {
namespace {

struct Form {
  dnnl::memory::desc layout;  // of everything that has the input's extent
  NormTiling tiling;
  double elements = 0;  // per channel
};

// In the layout that the input has, or, where our loops can't read that one, row-major.
Form form_of(Context& context, const Step& step, const Norm& op) {
  const Shape& shape = context.graph.values[op.in].shape;
  const dnnl::memory::desc plain = plain_layout(nchw(shape));
  const dnnl::memory::desc held = context.settle(step.uses[0].buffer, plain);
  const auto elements = static_cast<double>(shape.n * shape.h * shape.w);
  if (const auto layout = channel_layout(held))
    if (const auto tiling = norm_tiling(*layout)) return {held, *tiling, elements};
  return {plain, *norm_tiling(*channel_layout(plain)), elements};
}

dnnl::memory::desc sums_layout(std::size_t sums) {
  return plain_layout({static_cast<std::int64_t>(sums * sizeof(LaneSums) / sizeof(float))});
}

float* floats(std::byte* address) {
  return reinterpret_cast<float*>(address);
}

// Takes the addresses of a Call's operands in the order in which they were added.
class Addresses {
 public:
  explicit Addresses(const std::vector<std::byte*>& all) : next_(all.begin()) {}
  float* next(bool there = true) { return there ? floats(*next_++) : nullptr; }
  LaneSums* sums() { return reinterpret_cast<LaneSums*>(*next_++); }

 private:
  std::vector<std::byte*>::const_iterator next_;
};

Finish forward(Context& context, Step& step, const Norm& op) {
  const Form form = form_of(context, step, op);
  const dnnl::memory::desc channels = plain_layout({context.graph.values[op.in].shape.c});
  const bool has_residual = op.residual.has_value(), has_slope = op.slope.has_value();
  NormForward at{.tiling = form.tiling,
                 .activation = op.activation,
                 .order = norm_order(form.tiling, has_residual ? 3 : 2, threads_in_use()),
                 .one_slope = has_slope && context.graph.parameters[*op.slope].elements() == 1,
                 .epsilon = op.epsilon,
                 .momentum = op.momentum,
                 .elements = form.elements};
  Call call(context, step);
  call.input(0, step.uses[0].buffer, form.layout);
  for (std::size_t use : {1, 2, 3, 4}) call.input(0, step.uses[use].buffer, channels);
  call.output(0, step.uses[5].buffer, form.layout);
  for (std::size_t use : {6, 7}) call.output(0, step.uses[use].buffer, channels);
  if (has_residual) call.input(0, step.uses[8].buffer, form.layout);
  if (has_slope) call.input(0, step.uses[8].buffer, plain_layout(context.graph.parameters[*op.slope].dims));
  call.scratchpad(sums_layout(norm_forward_sums(form.tiling)));
  return call.finish(Call::Body([=](const std::vector<std::byte*>& addresses) mutable -> ComputeFn {
    Addresses next(addresses);
    at.in = next.next();
    at.scale = next.next();
    at.bias = next.next();
    at.running_mean = next.next();
    at.running_variance = next.next();
    at.out = next.next();
    at.mean = next.next();
    at.inverse_deviation = next.next();
    at.residual = next.next(has_residual);
    at.slope = next.next(has_slope);
    at.sums = next.sums();
    return [at] { norm_forward(at); };
  }));
}

// Which of the operands that aren't always there a backward step has.
struct Optional {
  bool out = false, second = false, residual = false, slope = false;
};
Optional optional_uses(const Program& program, const Step& step, const Norm& op) {
  Optional there;
  there.out = op.residual && op.activation == Activation::relu;
  const std::size_t next = there.out ? 10 : 9;
  there.second = step.uses.size() > next && step.uses[next].access == Access::read &&
                 program.buffers[step.uses[next].buffer].role == Role::activation_gradient;
  there.residual = op.residual && (there.out || there.second);
  there.slope = op.slope.has_value();
  return there;
}

Finish backward(Context& context, Step& step, const Norm& op) {
  const Form form = form_of(context, step, op);
  const dnnl::memory::desc channels = plain_layout({context.graph.values[op.in].shape.c});
  const Optional there = optional_uses(context.program, step, op);
  NormBackward at{
      .tiling = form.tiling,
      .activation = op.activation,
      .order = norm_order(form.tiling, 3 + there.out + there.second + there.residual, threads_in_use()),
      .one_slope = there.slope && context.graph.parameters[*op.slope].elements() == 1,
      .elements = form.elements};
  Call call(context, step);
  for (std::size_t use : {0, 1}) call.input(0, step.uses[use].buffer, form.layout);
  for (std::size_t use : {2, 3, 4, 5}) call.input(0, step.uses[use].buffer, channels);
  call.output(0, step.uses[6].buffer, form.layout);
  for (std::size_t use : {7, 8}) call.output(0, step.uses[use].buffer, channels);
  std::size_t next_use = 9;
  if (there.out) call.input(0, step.uses[next_use++].buffer, form.layout);
  if (there.second) call.input(0, step.uses[next_use++].buffer, form.layout);
  if (there.residual) call.output(0, step.uses[next_use++].buffer, form.layout);
  if (there.slope) {
    const auto slopes = plain_layout(context.graph.parameters[*op.slope].dims);
    call.input(0, step.uses[next_use++].buffer, slopes);
    call.output(0, step.uses[next_use++].buffer, slopes);
  }
  call.scratchpad(sums_layout(norm_backward_sums(form.tiling)));
  return call.finish(Call::Body([=](const std::vector<std::byte*>& addresses) mutable -> ComputeFn {
    Addresses next(addresses);
    at.in = next.next();
    at.d_out = next.next();
    at.scale = next.next();
    at.bias = next.next();
    at.mean = next.next();
    at.inverse_deviation = next.next();
    at.d_in = next.next();
    at.d_scale = next.next();
    at.d_bias = next.next();
    at.out = next.next(there.out);
    at.d_second = next.next(there.second);
    at.d_residual = next.next(there.residual);
    at.slope = next.next(there.slope);
    at.d_slope = next.next(there.slope);
    at.sums = next.sums();
    return [at] { norm_backward(at); };
  }));
}

}  // namespace

Finish prepare_norm(Context& context, Step& step) {
  const Norm& op = std::get<Norm>(context.graph.ops[step.op]);
  return step.kind == StepKind::norm_forward ? forward(context, step, op) : backward(context, step, op);
}

}  // namespace plumb::cpu
