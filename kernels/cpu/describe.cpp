// The training step on a CPU: oneDNN's operations, batch norm of our own with residual and activation inside,
// a second copy of each weight in the layout that backward-data reads, written by the update.
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
      : graph_(graph), lowering_(start_lowering(graph, StorageTypes{}, sizeof(State))) {
    means_.resize(graph.ops.size());
    inverse_deviations_.resize(graph.ops.size());
    saved_.resize(graph.ops.size());
  }

  Program run(const DescribeOptions& options) {
    if (options.load_batch_every_step)
      add("load_batch", StepKind::load_batch, Phase::input, kNone,
          {writes(lowering_.values[0]), writes(lowering_.labels)})
          .lane = Lane::input;
    for (std::size_t i = 0; i < graph_.ops.size(); ++i)
      std::visit([&](const auto& op) { forward(i, op); }, graph_.ops[i]);
    for (std::size_t i = graph_.ops.size(); i-- > 0;)
      std::visit([&](const auto& op) { backward(i, op); }, graph_.ops[i]);
    for (ParameterId p = 0; p < graph_.parameters.size(); ++p)
      if (graph_.parameters[p].trained) update(p);
    add("advance_state", StepKind::advance_state, Phase::update, kNone, {updates(lowering_.state)});
    return std::move(lowering_.program);
  }

 private:
  Step& add(std::string name, StepKind kind, Phase phase, std::size_t op, std::vector<BufferUse> uses,
            double macs = 0) {
    Step step{.name = std::move(name), .kind = kind, .phase = phase, .op = op, .uses = std::move(uses)};
    step.work = {.macs = macs, .bytes = memory_traffic_bytes(lowering_.program, step.uses)};
    return add_step(lowering_.program, std::move(step));
  }

  BufferId value(ValueId id) const { return lowering_.values[id]; }
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
    add(op.name + ".forward", StepKind::conv_forward, Phase::forward, i,
        {reads(value(op.in)), reads(lowering_.parameters[op.weight].master), writes(value(op.out))},
        macs(op));
  }
  void backward(std::size_t i, const Conv& op) {
    const BufferId d_out = gradient_of(lowering_, op.out, 1).front();
    ParameterBuffers& weight = lowering_.parameters[op.weight];
    add(op.name + ".backward_weights", StepKind::conv_backward_weights, Phase::backward, i,
        {reads(value(op.in)), reads(d_out), writes(weight.gradient)}, macs(op));
    if (op.in == 0) return;  // nobody wants the gradient of the images
    Buffer copy = lowering_.program.buffers[weight.master];
    copy.name += ".for_backward_data";
    weight.copies.push_back(add_buffer(lowering_.program, std::move(copy)));
    const BufferId d_in = new_gradient(op.in, op.name);
    add(op.name + ".backward_data", StepKind::conv_backward_data, Phase::backward, i,
        {reads(d_out), reads(weight.copies.back()), writes(d_in)}, macs(op));
    contribute(op.in, d_in);
  }

  void forward(std::size_t i, const Norm& op) {
    means_[i] = channel_buffer(op.name + ".mean", shape(op.in).c);
    inverse_deviations_[i] = channel_buffer(op.name + ".inverse_deviation", shape(op.in).c);
    std::vector<BufferUse> uses{reads(value(op.in)),
                                reads(lowering_.parameters[op.scale].master),
                                reads(lowering_.parameters[op.bias].master),
                                updates(lowering_.statistics[op.running_mean]),
                                updates(lowering_.statistics[op.running_variance]),
                                writes(value(op.out)),
                                writes(means_[i]),
                                writes(inverse_deviations_[i])};
    if (op.residual) uses.push_back(reads(value(*op.residual)));
    if (op.slope) uses.push_back(reads(lowering_.parameters[*op.slope].master));
    add(op.name + ".forward", StepKind::norm_forward, Phase::forward, i, std::move(uses)).work.bytes +=
        bytes_of_buffer(value(op.in));  // statistics need a read of their own
  }
  // The residual's gradient is what passes the activation: the output's own, where all of it passes.
  void backward(std::size_t i, const Norm& op) {
    const std::vector<BufferId> d_out = gradient_of(lowering_, op.out, 2);
    const bool relu_by_out = op.residual && op.activation == Activation::relu;
    const BufferId d_in = new_gradient(op.in, op.name);
    std::vector<BufferUse> uses{reads(value(op.in)),
                                reads(d_out[0]),
                                reads(lowering_.parameters[op.scale].master),
                                reads(lowering_.parameters[op.bias].master),
                                reads(means_[i]),
                                reads(inverse_deviations_[i]),
                                writes(d_in),
                                writes(lowering_.parameters[op.scale].gradient),
                                writes(lowering_.parameters[op.bias].gradient)};
    if (relu_by_out) uses.push_back(reads(value(op.out)));
    if (d_out.size() > 1) uses.push_back(reads(d_out[1]));
    // The sums over in and d_out come before the first element of d_in: both are read twice, or, in place of
    // d_out, the residual's gradient.
    double read_again = bytes_of_buffer(value(op.in));
    if (relu_by_out || (op.residual && d_out.size() > 1)) {
      const BufferId d_residual = new_gradient(*op.residual, op.name + ".residual");
      uses.push_back(writes(d_residual));
      read_again += bytes_of_buffer(d_residual);
      contribute(*op.residual, d_residual);
    } else {
      for (BufferId part : d_out) read_again += bytes_of_buffer(part);
      if (op.residual) contribute(*op.residual, d_out[0], true);
    }
    if (op.slope) {
      uses.push_back(reads(lowering_.parameters[*op.slope].master));
      uses.push_back(writes(lowering_.parameters[*op.slope].gradient));
    }
    add(op.name + ".backward", StepKind::norm_backward, Phase::backward, i, std::move(uses)).work.bytes +=
        read_again;
    contribute(op.in, d_in);
  }

  void forward(std::size_t i, const Pool& op) {
    std::vector<BufferUse> uses{reads(value(op.in)), writes(value(op.out))};
    if (op.kind == Pool::Kind::max) {
      saved_[i] = add_buffer(lowering_.program, {.name = op.name + ".argmax",
                                                 .role = Role::activation,
                                                 .dtype = DType::u8,
                                                 .dims = nchw(shape(op.out))});
      uses.push_back(writes(*saved_[i]));
    }
    add(op.name + ".forward", StepKind::pool_forward, Phase::forward, i, std::move(uses));
  }
  void backward(std::size_t i, const Pool& op) {
    const BufferId d_out = gradient_of(lowering_, op.out, 1).front();
    const BufferId d_in = new_gradient(op.in, op.name);
    std::vector<BufferUse> uses{reads(d_out), writes(d_in)};
    if (saved_[i]) uses.push_back(reads(*saved_[i]));
    add(op.name + ".backward", StepKind::pool_backward, Phase::backward, i, std::move(uses));
    contribute(op.in, d_in);
  }

  void forward(std::size_t i, const Dense& op) {
    add(op.name + ".forward", StepKind::dense_forward, Phase::forward, i,
        {reads(value(op.in)), reads(lowering_.parameters[op.weight].master),
         reads(lowering_.parameters[op.bias].master), writes(value(op.out))},
        macs(op));
  }
  void backward(std::size_t i, const Dense& op) {
    const BufferId d_out = gradient_of(lowering_, op.out, 1).front();
    add(op.name + ".backward_weights", StepKind::dense_backward_weights, Phase::backward, i,
        {reads(value(op.in)), reads(d_out), writes(lowering_.parameters[op.weight].gradient),
         writes(lowering_.parameters[op.bias].gradient)},
        macs(op));
    if (op.in == 0) return;
    const BufferId d_in = new_gradient(op.in, op.name);
    add(op.name + ".backward_data", StepKind::dense_backward_data, Phase::backward, i,
        {reads(d_out), reads(lowering_.parameters[op.weight].master), writes(d_in)}, macs(op));
    contribute(op.in, d_in);
  }

  void forward(std::size_t i, const Dropout& op) {
    add(op.name + ".forward", StepKind::dropout_forward, Phase::forward, i,
        {reads(value(op.in)), reads(lowering_.state), writes(value(op.out))});
  }
  void backward(std::size_t i, const Dropout& op) {
    const BufferId d_out = gradient_of(lowering_, op.out, 1).front();
    const BufferId d_in = new_gradient(op.in, op.name);
    add(op.name + ".backward", StepKind::dropout_backward, Phase::backward, i,
        {reads(d_out), reads(lowering_.state), writes(d_in)});
    contribute(op.in, d_in);
  }

  // Loss and its gradient in one step: both need the same exponentials.
  void forward(std::size_t i, const SoftmaxLoss& op) {
    const BufferId d_logits = new_gradient(op.in, op.name);
    add(op.name, StepKind::softmax_loss, Phase::forward, i,
        {reads(value(op.in)), reads(lowering_.labels), writes(d_logits), updates(lowering_.state)});
    contribute(op.in, d_logits);
  }
  void backward(std::size_t, const SoftmaxLoss&) {}

  void forward(std::size_t i, const MarginLoss& op) {
    margin_ =
        lower_margin_forward(lowering_, i, value(op.in), lowering_.parameters[op.weight].master, DType::f32);
  }
  void backward(std::size_t i, const MarginLoss& op) {
    contribute(op.in, lower_margin_backward(lowering_, i, margin_));
    if (op.head == Head::sampled) sampled_ = op.weight;
  }

  // Of the rows that the margin loss sampled.
  void update_rows(ParameterId p) {
    const ParameterBuffers& buffers = lowering_.parameters[p];
    Step& step = add(graph_.parameters[p].name + ".update", StepKind::update_rows, Phase::update, kNone,
                     {updates(buffers.master), updates(buffers.momentum), reads(buffers.gradient),
                      reads(*margin_.samples), reads(*margin_.sample_count), reads(lowering_.state)});
    step.parameter = p;
    // Of master and momentum the sampled rows alone are read and written.
    step.work.bytes = 5.0 * static_cast<double>(lowering_.program.buffers[buffers.gradient].bytes);
  }
  void update(ParameterId p) {
    if (p == sampled_) return update_rows(p);
    const ParameterBuffers& buffers = lowering_.parameters[p];
    std::vector<BufferUse> uses{updates(buffers.master), updates(buffers.momentum), reads(buffers.gradient),
                                reads(lowering_.state)};
    for (BufferId copy : buffers.copies) uses.push_back(writes(copy));
    add(graph_.parameters[p].name + ".update", StepKind::update, Phase::update, kNone, std::move(uses))
        .parameter = p;
  }

  const Graph& graph_;
  Lowering lowering_;
  std::vector<BufferId> means_, inverse_deviations_;  // by op
  std::vector<std::optional<BufferId>> saved_;        // by op: argmax
  MarginBuffers margin_;
  std::optional<ParameterId> sampled_;  // whose rows the margin loss samples
};

}  // namespace

Program describe(const Graph& graph, const DescribeOptions& options, const DeviceLimits&) {
  return Describer(graph).run(options);
}

}  // namespace plumb::cpu
