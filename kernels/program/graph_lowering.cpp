#include "kernels/program/graph_lowering.h"

#include <algorithm>
#include <stdexcept>

namespace plumb {

Instruction& GraphLowering::add(std::string name, Operation operation, Phase phase, std::size_t op) {
  Instruction& instruction =
      add_instruction(lowering_.program,
                      {.name = std::move(name), .operation = std::move(operation), .phase = phase, .op = op});
  if (op != kNone && !instruction.as<Cast>())
    instruction.work.macs = static_cast<double>(graph_.batch() * macs_per_image(graph_, graph_.ops[op]));
  return instruction;
}

void GraphLowering::load_batch(const Normalization& normalization, std::int64_t parts) {
  const Shape& images = shape(0);
  const auto add_staged = [&](const char* name, DType dtype, std::vector<std::int64_t> dims) {
    return add_buffer(
        lowering_.program,
        {.name = name, .role = Role::input, .dtype = dtype, .dims = std::move(dims), .persistent = true});
  };
  tensors_.staged_images =
      add_staged("images.staged", DType::u8, {parts, images.n, images.h, images.w, images.c});
  tensors_.staged_labels = add_staged("labels.staged", DType::i32, {parts, images.n});
  const double staged = bytes(tensors_.staged_images) + bytes(tensors_.staged_labels);
  const double unused = staged - staged / static_cast<double>(parts);
  Instruction& load =
      add("load_batch", LoadBatch{.images = tensors_.staged_images, .labels = tensors_.staged_labels},
          Phase::input);
  load.lane = Lane::input;
  load.work.bytes -= unused;
  add("pack_batch",
      PackBatch{.staged_images = tensors_.staged_images,
                .staged_labels = tensors_.staged_labels,
                .state = tensors_.state,
                .images = value(0),
                .labels = tensors_.labels,
                .normalization = normalization},
      Phase::input)
      .work.bytes -= unused;
}

BufferId GraphLowering::new_gradient(ValueId id, const std::string& by, DType dtype) {
  return add_buffer(lowering_.program, {.name = graph_.values[id].name + ".gradient_by." + by,
                                        .role = Role::activation_gradient,
                                        .dtype = dtype,
                                        .dims = nchw(shape(id))});
}

std::vector<BufferId> GraphLowering::gradients_of(ValueId id, std::size_t most) {
  const std::string& name = graph_.values[id].name;
  std::vector<Lowering::Contribution> parts = lowering_.gradients[id];
  if (parts.empty()) throw std::logic_error("no gradient reaches " + name);
  // Unshared buffers first: Accumulate may overwrite them.
  std::ranges::stable_partition(parts, std::logical_not{}, &Lowering::Contribution::shared);
  while (parts.size() > most) {
    const BufferId from = parts.back().buffer;
    parts.pop_back();
    if (parts.front().shared) throw std::logic_error("every gradient of " + name + " is shared");
    add(name + ".accumulate" + std::to_string(parts.size()),
        Accumulate{.into = parts.front().buffer, .from = from}, Phase::backward);
  }
  std::vector<BufferId> buffers;
  for (const auto& part : parts) buffers.push_back(part.buffer);
  return buffers;
}

BufferId GraphLowering::as_dtype(DType dtype, BufferId from, std::string name, Phase phase, std::size_t i) {
  Buffer into = lowering_.program.buffers[from];
  if (into.dtype == dtype) return from;
  into.name = name;
  into.bytes = into.bytes / bytes_of(into.dtype) * bytes_of(dtype);
  into.dtype = dtype;
  const BufferId made = add_buffer(lowering_.program, std::move(into));
  add(std::move(name), Cast{.from = from, .into = made}, phase, i);
  return made;
}

BatchNormBackward GraphLowering::norm_backward(std::size_t i, const BatchNorm& op,
                                               const std::vector<BufferId>& d_out, WriteOrAdd d_in) const {
  BatchNormBackward norm{.in = value(op.in),
                         .d_out = d_out.front(),
                         .scale = master(op.scale),
                         .bias = master(op.bias),
                         .mean = saved_[i].mean,
                         .inv_std = saved_[i].inv_std,
                         .d_in = d_in,
                         .d_scale = gradient(op.scale),
                         .d_bias = gradient(op.bias)};
  if (d_out.size() > 1) norm.second_d_out = d_out.back();
  if (op.slope) {
    norm.slope = master(*op.slope);
    norm.d_slope = gradient(*op.slope);
  }
  return norm;
}

void GraphLowering::pool_forward(std::size_t i, const Pool& op, BufferId in, std::optional<Read> scale_shift,
                                 std::optional<Write> winners) {
  PoolForward pool{.in = in, .out = value(op.out), .scale_shift = scale_shift, .winners = winners};
  if (op.kind == Pool::Kind::max) {
    saved_[i].argmax = add_saved(op.name + ".argmax", DType::u8, nchw(shape(op.out)));
    pool.argmax = saved_[i].argmax;
  }
  add(op.name + ".forward", pool, Phase::forward, i);
}

void GraphLowering::backward(std::size_t i, const Pool& op) {
  const PoolBackward pool{.d_out = gradients_of(op.out, 1).front(),
                          .d_in = new_gradient(op.in, op.name),
                          .argmax = saved_[i].argmax};
  add(op.name + ".backward", pool, Phase::backward, i);
  contribute(op.in, pool.d_in);
}

void GraphLowering::forward(std::size_t i, const Dense& op) {
  saved_[i].cast_in = as_dtype(lowering_.op_types[i], value(op.in), op.name + ".cast_in", Phase::forward, i);
  add(op.name + ".forward",
      DenseForward{.in = saved_[i].cast_in,
                   .weight = lowering_.weights[op.weight],
                   .bias = master(op.bias),
                   .out = value(op.out)},
      Phase::forward, i);
}

void GraphLowering::backward(std::size_t i, const Dense& op) {
  const BufferId d_out = gradient_of(op.out);
  add(op.name + ".backward_weights",
      DenseBackwardWeights{.in = saved_[i].cast_in,
                           .d_out = d_out,
                           .d_weight = gradient(op.weight),
                           .d_bias = gradient(op.bias)},
      Phase::backward, i);
  if (op.in == 0) return;  // no instruction reads the gradient of the images
  const BufferId d_in = new_gradient(op.in, op.name, lowering_.op_types[i]);
  add(op.name + ".backward_data",
      DenseBackwardData{.d_out = d_out, .weight = lowering_.weights[op.weight], .d_in = d_in},
      Phase::backward, i);
  contribute_as_stored(op.in, d_in, op.name, i);
}

void GraphLowering::forward(std::size_t i, const Dropout& op) {
  add(op.name + ".forward", DropoutForward{.in = value(op.in), .state = tensors_.state, .out = value(op.out)},
      Phase::forward, i);
}

void GraphLowering::backward(std::size_t i, const Dropout& op) {
  const BufferId d_out = gradient_of(op.out);
  const BufferId d_in = new_gradient(op.in, op.name);
  add(op.name + ".backward", DropoutBackward{.d_out = d_out, .state = tensors_.state, .d_in = d_in},
      Phase::backward, i);
  contribute(op.in, d_in);
}

void GraphLowering::forward(std::size_t i, const SoftmaxLoss& op) {
  const BufferId d_logits = new_gradient(op.in, op.name);
  add(op.name,
      SoftmaxCrossEntropy{
          .logits = value(op.in), .labels = tensors_.labels, .d_logits = d_logits, .state = tensors_.state},
      Phase::forward, i);
  contribute(op.in, d_logits);
}

void GraphLowering::forward(std::size_t i, const MarginLoss& op) {
  const BufferId features = as_dtype(DType::f32, value(op.in), op.name + ".cast_in", Phase::forward, i);
  saved_[i].margin = lower_margin_forward(lowering_, i, features);
}

void GraphLowering::backward(std::size_t i, const MarginLoss& op) {
  contribute_as_stored(op.in, lower_margin_backward(lowering_, i, saved_[i].margin), op.name, i);
}

}  // namespace plumb
