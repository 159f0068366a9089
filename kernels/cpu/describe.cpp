// The training iteration on a CPU: oneDNN's operations and our own batch norm with residual and activation
// fused. The update writes a second copy of each weight in the layout that backward-data reads.
#include "kernels/describe.h"

#include <stdexcept>
#include <utility>

#include "kernels/cpu/state.h"
#include "kernels/lowering.h"
#include "kernels/margin_lowering.h"

namespace plumb::cpu {
namespace {

class Describer {
 public:
  explicit Describer(const Graph& graph)
      : graph_(graph),
        lowering_(start_lowering(graph, StorageTypes{}, sizeof(State))),
        tensors_(lowering_.tensors()),
        means_(graph.ops.size()),
        inv_stds_(graph.ops.size()),
        argmax_(graph.ops.size()) {}

  Program run(const DescribeOptions& options) {
    if (options.load_batch_every_step)
      add("load_batch", LoadBatch{.images = value(0), .labels = tensors_.labels}, Phase::input).lane =
          Lane::input;
    for (std::size_t i = 0; i < graph_.ops.size(); ++i)
      std::visit([&](const auto& op) { forward(i, op); }, graph_.ops[i]);
    for (std::size_t i = graph_.ops.size(); i-- > 0;)
      std::visit([&](const auto& op) { backward(i, op); }, graph_.ops[i]);
    for (ParameterId p = 0; p < graph_.parameters.size(); ++p)
      if (graph_.parameters[p].trained) update(p);
    add("advance_state", AdvanceState{.state = tensors_.state}, Phase::update);
    return std::move(lowering_.program);
  }

 private:
  Instruction& add(std::string name, Operation operation, Phase phase, std::size_t op = kNone,
                   double macs = 0) {
    Instruction& instruction = add_instruction(
        lowering_.program,
        {.name = std::move(name), .operation = std::move(operation), .phase = phase, .op = op});
    instruction.work.macs = macs;
    return instruction;
  }

  BufferId value(ValueId id) const { return tensors_.values[id]; }
  BufferId master(ParameterId id) const { return tensors_.parameters[id].master; }
  BufferId gradient(ParameterId id) const { return tensors_.parameters[id].gradient; }
  const Shape& shape(ValueId id) const { return graph_.values[id].shape; }
  BufferId new_gradient(ValueId id, const std::string& by) {
    return add_buffer_like(lowering_.program, value(id), graph_.values[id].name + ".gradient_by." + by,
                           Role::activation_gradient);
  }
  BufferId channel_buffer(const std::string& name, std::int64_t channels) {
    return add_buffer(lowering_.program, {.name = name, .role = Role::activation, .dims = {channels}});
  }
  double bytes_of_buffer(BufferId id) const {
    return static_cast<double>(lowering_.program.buffers[id].bytes);
  }
  void contribute(ValueId id, BufferId buffer, bool shared = false) {
    lowering_.gradients[id].push_back({buffer, shared});
  }

  double macs(const Conv& op) const {
    const std::int64_t channels_per_group = shape(op.in).c / op.groups;
    return static_cast<double>(shape(op.out).elements()) * op.kernel * op.kernel * channels_per_group;
  }
  double macs(const Dense& op) const {
    return static_cast<double>(shape(op.out).elements() * (shape(op.in).elements() / shape(op.in).n));
  }

  void forward(std::size_t i, const Conv& op) {
    add(op.name + ".forward",
        ConvForward{.in = value(op.in), .weight = master(op.weight), .out = value(op.out)}, Phase::forward, i,
        macs(op));
  }
  void backward(std::size_t i, const Conv& op) {
    const BufferId d_out = gradient_of(lowering_, op.out, 1).front();
    add(op.name + ".backward_weights",
        ConvBackwardWeights{.in = value(op.in), .d_out = d_out, .d_weight = gradient(op.weight)},
        Phase::backward, i, macs(op));
    if (op.in == 0) return;  // no instruction reads the gradient of the images
    Buffer copy = lowering_.program.buffers[master(op.weight)];
    copy.name += ".for_backward_data";
    const BufferId weight = add_buffer(lowering_.program, std::move(copy));
    tensors_.parameters[op.weight].copies.push_back(weight);
    const BufferId d_in = new_gradient(op.in, op.name);
    add(op.name + ".backward_data", ConvBackwardData{.d_out = d_out, .weight = weight, .d_in = d_in},
        Phase::backward, i, macs(op));
    contribute(op.in, d_in);
  }

  void forward(std::size_t i, const BatchNorm& op) {
    means_[i] = channel_buffer(op.name + ".mean", shape(op.in).c);
    inv_stds_[i] = channel_buffer(op.name + ".inv_std", shape(op.in).c);
    BatchNormForward norm{.in = value(op.in),
                          .scale = master(op.scale),
                          .bias = master(op.bias),
                          .running_mean = tensors_.statistics[op.running_mean],
                          .running_variance = tensors_.statistics[op.running_variance],
                          .out = value(op.out),
                          .mean = means_[i],
                          .inv_std = inv_stds_[i]};
    if (op.residual) norm.residual = value(*op.residual);
    if (op.slope) norm.slope = master(*op.slope);
    add(op.name + ".forward", norm, Phase::forward, i).work.bytes +=
        bytes_of_buffer(value(op.in));  // statistics read the input once more
  }
  // The residual's gradient is d_out after the activation's backward; without an activation it is d_out.
  void backward(std::size_t i, const BatchNorm& op) {
    const std::vector<BufferId> d_out = gradient_of(lowering_, op.out, 2);
    BatchNormBackward norm{.in = value(op.in),
                           .d_out = d_out[0],
                           .scale = master(op.scale),
                           .bias = master(op.bias),
                           .mean = means_[i],
                           .inv_std = inv_stds_[i],
                           .d_in = new_gradient(op.in, op.name),
                           .d_scale = gradient(op.scale),
                           .d_bias = gradient(op.bias)};
    if (op.residual && op.activation == Activation::relu) norm.out = value(op.out);
    if (d_out.size() > 1) norm.second_d_out = d_out[1];
    // d_in needs the complete sums over in and d_out, so both are read twice; the second pass reads the
    // residual's gradient instead of d_out if there is one.
    double read_again = bytes_of_buffer(value(op.in));
    if (op.residual && (norm.out || norm.second_d_out)) {
      const BufferId d_residual = new_gradient(*op.residual, op.name + ".residual");
      norm.d_residual = d_residual;
      read_again += bytes_of_buffer(d_residual);
      contribute(*op.residual, d_residual);
    } else {
      for (BufferId part : d_out) read_again += bytes_of_buffer(part);
      if (op.residual) contribute(*op.residual, d_out[0], true);
    }
    if (op.slope) {
      norm.slope = master(*op.slope);
      norm.d_slope = gradient(*op.slope);
    }
    add(op.name + ".backward", norm, Phase::backward, i).work.bytes += read_again;
    contribute(op.in, norm.d_in);
  }

  void forward(std::size_t i, const Pool& op) {
    if (op.kind == Pool::Kind::max)
      argmax_[i] = add_buffer(lowering_.program, {.name = op.name + ".argmax",
                                                  .role = Role::activation,
                                                  .dtype = DType::u8,
                                                  .dims = nchw(shape(op.out))});
    add(op.name + ".forward", PoolForward{.in = value(op.in), .out = value(op.out), .argmax = argmax_[i]},
        Phase::forward, i);
  }
  void backward(std::size_t i, const Pool& op) {
    const BufferId d_out = gradient_of(lowering_, op.out, 1).front();
    const BufferId d_in = new_gradient(op.in, op.name);
    add(op.name + ".backward", PoolBackward{.d_out = d_out, .d_in = d_in, .argmax = argmax_[i]},
        Phase::backward, i);
    contribute(op.in, d_in);
  }

  void forward(std::size_t i, const Dense& op) {
    add(op.name + ".forward",
        DenseForward{
            .in = value(op.in), .weight = master(op.weight), .bias = master(op.bias), .out = value(op.out)},
        Phase::forward, i, macs(op));
  }
  void backward(std::size_t i, const Dense& op) {
    const BufferId d_out = gradient_of(lowering_, op.out, 1).front();
    add(op.name + ".backward_weights",
        DenseBackwardWeights{
            .in = value(op.in), .d_out = d_out, .d_weight = gradient(op.weight), .d_bias = gradient(op.bias)},
        Phase::backward, i, macs(op));
    if (op.in == 0) return;
    const BufferId d_in = new_gradient(op.in, op.name);
    add(op.name + ".backward_data",
        DenseBackwardData{.d_out = d_out, .weight = master(op.weight), .d_in = d_in}, Phase::backward, i,
        macs(op));
    contribute(op.in, d_in);
  }

  void forward(std::size_t i, const Dropout& op) {
    add(op.name + ".forward",
        DropoutForward{.in = value(op.in), .state = tensors_.state, .out = value(op.out)}, Phase::forward, i);
  }
  void backward(std::size_t i, const Dropout& op) {
    const BufferId d_out = gradient_of(lowering_, op.out, 1).front();
    const BufferId d_in = new_gradient(op.in, op.name);
    add(op.name + ".backward", DropoutBackward{.d_out = d_out, .state = tensors_.state, .d_in = d_in},
        Phase::backward, i);
    contribute(op.in, d_in);
  }

  void forward(std::size_t i, const SoftmaxLoss& op) {
    const BufferId d_logits = new_gradient(op.in, op.name);
    add(op.name,
        SoftmaxCrossEntropy{
            .logits = value(op.in), .labels = tensors_.labels, .d_logits = d_logits, .state = tensors_.state},
        Phase::forward, i);
    contribute(op.in, d_logits);
  }
  void backward(std::size_t, const SoftmaxLoss&) {}

  void forward(std::size_t i, const MarginLoss& op) {
    margin_ = lower_margin_forward(lowering_, i, value(op.in), master(op.weight), DType::f32);
  }
  void backward(std::size_t i, const MarginLoss& op) {
    contribute(op.in, lower_margin_backward(lowering_, i, margin_));
  }

  void update_rows(ParameterId p, const SampledRows& rows) {
    const ParameterBuffers& buffers = tensors_.parameters[p];
    Instruction& instruction = add(graph_.parameters[p].name + ".update",
                                   UpdateRows{.parameter = p,
                                              .master = buffers.master,
                                              .momentum = buffers.momentum,
                                              .d_rows = buffers.gradient,
                                              .samples = rows.samples,
                                              .sample_count = rows.count,
                                              .state = tensors_.state},
                                   Phase::update);
    // Reads and writes only the sampled rows of master and momentum.
    instruction.work.bytes = 5.0 * bytes_of_buffer(buffers.gradient);
  }
  void update(ParameterId p) {
    if (const auto rows = tensors_.sampled_rows.find(p); rows != tensors_.sampled_rows.end())
      return update_rows(p, rows->second);
    add(graph_.parameters[p].name + ".update",
        Update{.state = tensors_.state, .parameters = {updated_parameter(tensors_, p)}}, Phase::update);
  }

  const Graph& graph_;
  Lowering lowering_;
  Tensors& tensors_;                             // lowering_.tensors()
  std::vector<BufferId> means_, inv_stds_;       // by op
  std::vector<std::optional<BufferId>> argmax_;  // by op
  MarginBuffers margin_;
};

}  // namespace

Program describe(const Graph& graph, const DescribeOptions& options, const DeviceLimits&) {
  return Describer(graph).run(options);
}

}  // namespace plumb::cpu
