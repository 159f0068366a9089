// The training step on an NVIDIA GPU, NHWC: plain convolutions, one step per norm in each direction
// (statistics, normalise, add, ReLU; which elements passed the ReLU is kept as one bit each, so that backward
// reads neither the output nor the residual), one multi-tensor update that also writes the half-precision
// copies of the weights.
#include "kernels/describe.h"

#include <algorithm>
#include <utility>

#include "kernels/device.h"
#include "kernels/lowering.h"
#include "models/cost.h"

namespace plumb::cuda {
namespace {

// The most that a convolution's or a GEMM's engine may take; engines that want more aren't chosen. cuBLASLt's
// own recommendation for sm_90 is 32 MiB.
constexpr std::size_t kConvWorkspaceLimit = std::size_t{256} << 20;
constexpr std::size_t kDenseWorkspaceLimit = std::size_t{32} << 20;
// Thread blocks that each leave two fp32 partial sums per channel in a norm's reductions.
constexpr std::size_t kNormBlocks = 128;

bool is_half(Precision precision) {
  return precision == Precision::fp16 || precision == Precision::bf16;
}

StorageTypes storage_types(Precision precision) {
  // Tensor cores read 16 bytes at once: 8 halves or 4 floats.
  if (!is_half(precision)) return {.image_channels = 4};
  const DType half = precision == Precision::fp16 ? DType::f16 : DType::bf16;
  return {.activations = half, .weight_gradients = half, .image_channels = 8};
}

class Describer {
 public:
  Describer(const Graph& graph, Precision precision)
      : graph_(graph),
        types_(storage_types(precision)),
        lowering_(start_lowering(graph, types_,
                                 sizeof(StepState) + Device::kMetricsKept * sizeof(IterationMetrics))) {
    saved_.resize(graph.ops.size());
    forward_weights_.resize(graph.parameters.size());
    for (const Op& op : graph.ops) {
      if (const Conv* conv = std::get_if<Conv>(&op); conv && conv->in == 0) pad_input_channels(*conv);
    }
    for (ParameterId id = 0; id < graph.parameters.size(); ++id) add_weight_copy(id, precision);
  }

  Program run(const DescribeOptions& options) {
    if (options.load_batch_every_step) {
      add("load_batch", StepKind::load_batch, Phase::input, kNone,
          {writes(lowering_.values[0]), writes(lowering_.labels)})
          .lane = Lane::input;
    }
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      std::visit([&](const auto& op) { forward(i, op); }, graph_.ops[i]);
    }
    for (std::size_t i = graph_.ops.size(); i-- > 0;) {
      std::visit([&](const auto& op) { backward(i, op); }, graph_.ops[i]);
    }
    update();
    add("advance_state", StepKind::advance_state, Phase::update, kNone, {updates(lowering_.state)});
    return std::move(lowering_.program);
  }

 private:
  // What a norm's or a pool's forward keeps for backward.
  struct Saved {
    BufferId mean = 0, variance = 0;
    std::optional<BufferId> mask, argmax;
  };

  Step& add(std::string name, StepKind kind, Phase phase, std::size_t op, std::vector<BufferUse> uses) {
    Step step{.name = std::move(name), .kind = kind, .phase = phase, .op = op, .uses = std::move(uses)};
    step.work.bytes = memory_traffic_bytes(lowering_.program, step.uses);
    if (op != kNone && kind != StepKind::softmax_loss) {
      step.work.macs = static_cast<double>(graph_.batch() * macs_per_image(graph_, graph_.ops[op]));
    }
    return add_step(lowering_.program, std::move(step));
  }

  BufferId value(ValueId id) const { return lowering_.values[id]; }
  const Shape& shape(ValueId id) const { return graph_.values[id].shape; }
  double bytes(BufferId id) const { return static_cast<double>(lowering_.program.buffers[id].bytes); }
  BufferId new_gradient(ValueId id, const std::string& by) {
    return add_buffer_like(lowering_.program, value(id), graph_.values[id].name + ".gradient_by." + by,
                           Role::activation_gradient);
  }
  void contribute(ValueId id, BufferId buffer) { lowering_.gradients[id].push_back({buffer, false}); }

  // The first convolution's weight, and all that has its layout, has the images' channels.
  void pad_input_channels(const Conv& op) {
    const ParameterBuffers& weight = lowering_.parameters[op.weight];
    for (BufferId id : {weight.master, weight.momentum, weight.gradient}) {
      std::size_t& held = lowering_.program.buffers[id].bytes;
      held = held / static_cast<std::size_t>(shape(0).c) * static_cast<std::size_t>(types_.image_channels);
    }
  }

  void add_weight_copy(ParameterId id, Precision precision) {
    ParameterBuffers& buffers = lowering_.parameters[id];
    forward_weights_[id] = buffers.master;
    if (!is_half(precision) || graph_.parameters[id].dims.size() < 2) return;
    Buffer copy = lowering_.program.buffers[buffers.master];
    copy.bytes = copy.bytes / bytes_of(copy.dtype) * bytes_of(types_.activations);
    copy.dtype = types_.activations;
    copy.name += ".half";
    forward_weights_[id] = add_buffer(lowering_.program, std::move(copy));
    buffers.copies.push_back(forward_weights_[id]);
  }

  // Engines may transpose what they read and write, and keep partial sums of weights in fp32.
  std::size_t conv_workspace_bytes(const Conv& op) const {
    const ParameterBuffers& weight = lowering_.parameters[op.weight];
    const double wanted = bytes(value(op.in)) + bytes(value(op.out)) + 4 * bytes(weight.master);
    return std::min(kConvWorkspaceLimit, static_cast<std::size_t>(wanted));
  }
  static std::size_t norm_workspace_bytes(const Shape& shape) {
    return 2 * sizeof(float) * kNormBlocks * static_cast<std::size_t>(shape.c);
  }

  void forward(std::size_t i, const Conv& op) {
    add(op.name + ".forward", StepKind::conv_forward, Phase::forward, i,
        {reads(value(op.in)), reads(forward_weights_[op.weight]), writes(value(op.out))})
        .workspace_bytes = conv_workspace_bytes(op);
  }
  void backward(std::size_t i, const Conv& op) {
    const BufferId d_out = gradient_of(lowering_, op.out, 1).front();
    add(op.name + ".backward_weights", StepKind::conv_backward_weights, Phase::backward, i,
        {reads(value(op.in)), reads(d_out), writes(lowering_.parameters[op.weight].gradient)})
        .workspace_bytes = conv_workspace_bytes(op);
    if (op.in == 0) return;  // nobody wants the gradient of the images
    const BufferId d_in = new_gradient(op.in, op.name);
    add(op.name + ".backward_data", StepKind::conv_backward_data, Phase::backward, i,
        {reads(d_out), reads(forward_weights_[op.weight]), writes(d_in)})
        .workspace_bytes = conv_workspace_bytes(op);
    contribute(op.in, d_in);
  }

  BufferId add_saved(std::string name, DType dtype, std::vector<std::int64_t> dims) {
    return add_buffer(lowering_.program, {.name = std::move(name), .dtype = dtype, .dims = std::move(dims)});
  }

  void forward(std::size_t i, const Norm& op) {
    Saved& saved = saved_[i];
    const Shape& in = shape(op.in);
    saved.mean = add_saved(op.name + ".mean", DType::f32, {in.c});
    saved.variance = add_saved(op.name + ".variance", DType::f32, {in.c});
    std::vector<BufferUse> uses{reads(value(op.in)),
                                reads(lowering_.parameters[op.scale].master),
                                reads(lowering_.parameters[op.bias].master),
                                updates(lowering_.statistics[op.running_mean]),
                                updates(lowering_.statistics[op.running_variance]),
                                writes(value(op.out)),
                                writes(saved.mean),
                                writes(saved.variance)};
    if (op.activation == Activation::relu) {
      saved.mask = add_saved(op.name + ".mask", DType::u8, {(in.elements() + 7) / 8});
      uses.push_back(writes(*saved.mask));
    }
    if (op.residual) uses.push_back(reads(value(*op.residual)));
    Step& step = add(op.name + ".forward", StepKind::norm_forward, Phase::forward, i, std::move(uses));
    step.work.bytes += bytes(value(op.in));  // once for the statistics, once to normalise
    step.workspace_bytes = norm_workspace_bytes(in);
  }

  // Two passes: sums over in and d_out, then d_in. With a residual the first pass writes its gradient, the
  // masked sum of what reaches the output, and the second reads that in place of the parts and the mask.
  void backward(std::size_t i, const Norm& op) {
    const Saved& saved = saved_[i];
    const std::vector<BufferId> d_out = gradient_of(lowering_, op.out, 2);
    const BufferId d_in = new_gradient(op.in, op.name);
    std::vector<BufferUse> uses{reads(value(op.in)),
                                reads(d_out.front()),
                                reads(lowering_.parameters[op.scale].master),
                                reads(lowering_.parameters[op.bias].master),
                                reads(saved.mean),
                                reads(saved.variance),
                                writes(d_in),
                                writes(lowering_.parameters[op.scale].gradient),
                                writes(lowering_.parameters[op.bias].gradient)};
    double second_pass_bytes = bytes(value(op.in));
    if (saved.mask) uses.push_back(reads(*saved.mask));
    if (d_out.size() > 1) uses.push_back(reads(d_out.back()));
    if (op.residual) {
      const BufferId d_residual = new_gradient(*op.residual, op.name);
      uses.push_back(writes(d_residual));
      contribute(*op.residual, d_residual);
      second_pass_bytes += bytes(d_residual);
    } else {
      for (BufferId part : d_out) second_pass_bytes += bytes(part);
      if (saved.mask) second_pass_bytes += bytes(*saved.mask);
    }
    Step& step = add(op.name + ".backward", StepKind::norm_backward, Phase::backward, i, std::move(uses));
    step.work.bytes += second_pass_bytes;
    step.workspace_bytes = norm_workspace_bytes(shape(op.in));
    contribute(op.in, d_in);
  }

  void forward(std::size_t i, const Pool& op) {
    std::vector<BufferUse> uses{reads(value(op.in)), writes(value(op.out))};
    if (op.kind == Pool::Kind::max) {
      saved_[i].argmax = add_saved(op.name + ".argmax", DType::u8, nchw(shape(op.out)));
      uses.push_back(writes(*saved_[i].argmax));
    }
    add(op.name + ".forward", StepKind::pool_forward, Phase::forward, i, std::move(uses));
  }
  void backward(std::size_t i, const Pool& op) {
    const BufferId d_out = gradient_of(lowering_, op.out, 1).front();
    const BufferId d_in = new_gradient(op.in, op.name);
    std::vector<BufferUse> uses{reads(d_out), writes(d_in)};
    if (saved_[i].argmax) uses.push_back(reads(*saved_[i].argmax));
    add(op.name + ".backward", StepKind::pool_backward, Phase::backward, i, std::move(uses));
    contribute(op.in, d_in);
  }

  void forward(std::size_t i, const Dense& op) {
    add(op.name + ".forward", StepKind::dense_forward, Phase::forward, i,
        {reads(value(op.in)), reads(forward_weights_[op.weight]), reads(lowering_.parameters[op.bias].master),
         writes(value(op.out))})
        .workspace_bytes = kDenseWorkspaceLimit;
  }
  void backward(std::size_t i, const Dense& op) {
    const BufferId d_out = gradient_of(lowering_, op.out, 1).front();
    add(op.name + ".backward_weights", StepKind::dense_backward_weights, Phase::backward, i,
        {reads(value(op.in)), reads(d_out), writes(lowering_.parameters[op.weight].gradient),
         writes(lowering_.parameters[op.bias].gradient)})
        .workspace_bytes = kDenseWorkspaceLimit;
    if (op.in == 0) return;
    const BufferId d_in = new_gradient(op.in, op.name);
    add(op.name + ".backward_data", StepKind::dense_backward_data, Phase::backward, i,
        {reads(d_out), reads(forward_weights_[op.weight]), writes(d_in)})
        .workspace_bytes = kDenseWorkspaceLimit;
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

  void update() {
    std::vector<BufferUse> uses{reads(lowering_.state)};
    for (const ParameterBuffers& buffers : lowering_.parameters) {
      uses.insert(uses.end(), {updates(buffers.master), updates(buffers.momentum), reads(buffers.gradient)});
      for (BufferId copy : buffers.copies) uses.push_back(writes(copy));
    }
    add("update", StepKind::update, Phase::update, kNone, std::move(uses));
  }

  const Graph& graph_;
  StorageTypes types_;
  Lowering lowering_;
  std::vector<Saved> saved_;               // by op
  std::vector<BufferId> forward_weights_;  // by ParameterId: what forward and backward-data read
};

}  // namespace

Program describe(const Graph& graph, const DescribeOptions& options, const DeviceLimits&) {
  return Describer(graph, options.precision).run(options);
}

}  // namespace plumb::cuda
