// The training step on an NVIDIA GPU, NHWC. A norm's forward is two steps: statistics, and one pass that
// normalises, adds a residual (and normalises a shortcut) and applies the ReLU; a max
// pool does that for itself. Its backward is one; which elements passed the ReLU it
// finds from the norm's input, or, after a residual, from one bit each that forward keeps. Where
// plan_fusion() says so, convolutions take parts of that over: the statistics of what they write, the
// normalisation of what they read, backward through the norm in front of them; a norm that is normalised
// inside a convolution alone is never stored. The gradient that a shortcut without ReLU hands on is that of
// the sum itself, and a norm in front of the first convolution of a block adds its own to it. One
// multi-tensor update writes the half-precision copies of the weights, too.
#include "kernels/describe.h"

#include <stdexcept>
#include <utility>

#include "kernels/cuda/fusion.h"
#include "kernels/cuda/margin_partition.h"
#include "kernels/cuda/norm_partition.h"
#include "kernels/cuda/storage.h"
#include "kernels/cuda/update_lowering.h"
#include "kernels/cuda/workspaces.h"
#include "kernels/margin_lowering.h"
#include "models/cost.h"

namespace plumb::cuda {
namespace {

class Describer {
 public:
  Describer(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits)
      : graph_(graph),
        storage_(start_storage(graph, options)),
        lowering_(storage_.lowering),
        layers_(plan_fusion(graph, options, limits)),
        saved_(graph.ops.size()) {
    lowering_.program.allow_tf32 = options.precision == Precision::tf32;
  }

  Program run(const DescribeOptions& options) {
    if (options.load_batch_every_step) load_batch();
    for (std::size_t i = 0; i < graph_.ops.size(); ++i)
      std::visit([&](const auto& op) { forward(i, op); }, graph_.ops[i]);
    for (std::size_t i = graph_.ops.size(); i-- > 0;)
      std::visit([&](const auto& op) { backward(i, op); }, graph_.ops[i]);
    lower_update(lowering_, sampled_, options.scale_loss);
    drop_unused_buffers(lowering_.program);  // values that no step stores
    return std::move(lowering_.program);
  }

 private:
  // What an operation's forward keeps for others.
  struct Saved {
    BufferId mean = 0, inverse_deviation = 0;
    BufferId sums = 0, factors = 0, coefficients = 0;  // where convolutions do parts of the norm
    std::optional<BufferId> mask, argmax;
    BufferId cast_in = 0;  // a dense layer's input in the dtype that it computes with
    MarginBuffers margin;
  };

  Step& add(std::string name, StepKind kind, Phase phase, std::size_t op, std::vector<BufferUse> uses) {
    Step step{.name = std::move(name), .kind = kind, .phase = phase, .op = op, .uses = std::move(uses)};
    step.work.bytes = memory_traffic_bytes(lowering_.program, step.uses);
    if (op != kNone && kind != StepKind::softmax_loss)
      step.work.macs = static_cast<double>(graph_.batch() * macs_per_image(graph_, graph_.ops[op]));
    return add_step(lowering_.program, std::move(step));
  }

  BufferId value(ValueId id) const { return lowering_.values[id]; }
  const Shape& shape(ValueId id) const { return graph_.values[id].shape; }
  std::int64_t pixels(ValueId id) const { return shape(id).n * shape(id).h * shape(id).w; }
  double bytes(BufferId id) const { return static_cast<double>(lowering_.program.buffers[id].bytes); }
  BufferId gradient(ParameterId id) const { return lowering_.parameters[id].gradient; }
  BufferId master(ParameterId id) const { return lowering_.parameters[id].master; }

  BufferId add_saved(std::string name, DType dtype, std::vector<std::int64_t> dims) {
    return add_buffer(lowering_.program, {.name = std::move(name), .dtype = dtype, .dims = std::move(dims)});
  }
  BufferId new_gradient(ValueId id, const std::string& by) {
    return new_gradient(id, by, storage_.gradients[id]);
  }
  BufferId new_gradient(ValueId id, const std::string& by, DType dtype) {
    return add_buffer(lowering_.program, {.name = graph_.values[id].name + ".gradient_by." + by,
                                          .role = Role::activation_gradient,
                                          .dtype = dtype,
                                          .dims = nchw(shape(id))});
  }
  void contribute(ValueId id, BufferId buffer, bool shared = false) {
    lowering_.gradients[id].push_back({buffer, shared});
  }

  // The same elements in this dtype: itself, or what a step of operation `i` makes of it.
  BufferId as_dtype(DType dtype, BufferId from, std::string name, Phase phase, std::size_t i) {
    Buffer into = lowering_.program.buffers[from];
    if (into.dtype == dtype) return from;
    into.name = name;
    into.bytes = into.bytes / bytes_of(into.dtype) * bytes_of(dtype);
    into.dtype = dtype;
    const BufferId made = add_buffer(lowering_.program, std::move(into));
    add(std::move(name), StepKind::cast, phase, kNone, {reads(from), writes(made)}).op = i;
    return made;
  }

  void load_batch() {
    const Staging staged = add_staging(lowering_);
    const double unused_half = (bytes(staged.images) + bytes(staged.labels)) / 2;
    Step& load = add("load_batch", StepKind::load_batch, Phase::input, kNone,
                     {writes(staged.images), writes(staged.labels)});
    load.lane = Lane::input;
    load.work.bytes -= unused_half;
    add("pack_batch", StepKind::pack_batch, Phase::input, kNone,
        {reads(staged.images), reads(staged.labels), reads(lowering_.state), writes(value(0)),
         writes(lowering_.labels)})
        .work.bytes -= unused_half;
  }

  std::size_t conv_workspace(const Conv& op, StepKind kind) const {
    const auto buffer = [&](BufferId id) -> const Buffer& { return lowering_.program.buffers[id]; };
    return conv_workspace_bytes(graph_, op, kind, buffer(value(op.in)), buffer(value(op.out)),
                                buffer(master(op.weight)));
  }
  const Norm& norm_in_front(std::size_t i) const {
    return std::get<Norm>(graph_.ops[*layers_[i].norm_in_front]);
  }

  void forward(std::size_t i, const Conv& op) {
    const LayerFusion& layer = layers_[i];
    BufferId in = value(op.in);
    if (layer.forward.normalizes_input) in = value(norm_in_front(i).in);
    std::vector<BufferUse> uses{reads(in), reads(storage_.weights[op.weight]), writes(value(op.out))};
    if (layer.forward.normalizes_input) uses.push_back(reads(saved_[*layer.norm_in_front].factors));
    if (layer.forward.adds_residual) {
      uses.push_back(reads(value(*norm_in_front(i).residual)));
      uses.push_back(writes(value(op.in)));
    }
    if (layer.forward.gathers_statistics) {
      saved_[i].sums = add_saved(op.name + ".sums", DType::f32, {2, shape(op.out).c});
      uses.push_back(writes(saved_[i].sums));
    }
    Step& step = add(op.name + ".forward", StepKind::conv_forward, Phase::forward, i, std::move(uses));
    step.fusion = layer.forward;
    step.workspace_bytes = conv_workspace(op, step.kind);
  }
  void backward(std::size_t i, const Conv& op) {
    const LayerFusion& layer = layers_[i];
    const BufferId d_out = gradient_of(lowering_, op.out, 1).front();
    std::vector<BufferUse> uses{reads(value(op.in)), reads(d_out), writes(gradient(op.weight))};
    if (layer.weights_normalize_input) {
      uses.front() = reads(value(norm_in_front(i).in));
      uses.push_back(reads(saved_[*layer.norm_in_front].factors));
    }
    Step& weights = add(op.name + ".backward_weights", StepKind::conv_backward_weights, Phase::backward, i,
                        std::move(uses));
    weights.fusion.normalizes_input = layer.weights_normalize_input;
    weights.workspace_bytes = conv_workspace(op, weights.kind);
    if (op.in == 0) return;  // nobody wants the gradient of the images
    const BufferId d_in = new_gradient(op.in, op.name);
    contribute(op.in, d_in);
    Step& data = layer.backward_through_norm
                     ? backward_through_norm(i, op, d_out, d_in)
                     : add(op.name + ".backward_data", StepKind::conv_backward_data, Phase::backward, i,
                           {reads(d_out), reads(storage_.weights[op.weight]), writes(d_in)});
    data.workspace_bytes = conv_workspace(op, data.kind);
  }

  // d_in is the gradient in front of the ReLU then; backward of the norm itself ends with its coefficients.
  Step& backward_through_norm(std::size_t i, const Conv& op, BufferId d_out, BufferId d_in) {
    const Norm& norm = norm_in_front(i);
    Saved& saved = saved_[*layers_[i].norm_in_front];
    saved.coefficients = add_saved(norm.name + ".coefficients", DType::f32, {3, shape(norm.in).c});
    return add(
        op.name + ".backward_data", StepKind::conv_norm_backward_data, Phase::backward, i,
        {reads(d_out), reads(storage_.weights[op.weight]), reads(value(norm.in)), reads(master(norm.bias)),
         reads(saved.mean), reads(saved.inverse_deviation), reads(master(norm.scale)), writes(d_in),
         writes(gradient(norm.scale)), writes(gradient(norm.bias)), writes(saved.coefficients)});
  }

  void forward(std::size_t i, const Norm& op) {
    statistics(i, op);
    const LayerFusion& layer = layers_[i];
    if (layer.inside_conv || !layer.stored) return;
    Saved& saved = saved_[i];
    std::vector<BufferUse> uses{reads(value(op.in)), reads(saved.factors), writes(value(op.out))};
    if (op.activation == Activation::relu && op.residual) {
      saved.mask = add_saved(op.name + ".mask", DType::u8, {(shape(op.in).elements() + 7) / 8});
      uses.push_back(writes(*saved.mask));
    }
    if (layer.norm_in_front) {
      uses.push_back(reads(value(norm_in_front(i).in)));
      uses.push_back(reads(saved_[*layer.norm_in_front].factors));
    } else if (op.residual) {
      uses.push_back(reads(value(*op.residual)));
    }
    if (op.slope) uses.push_back(reads(master(*op.slope)));
    add(op.name + ".forward", StepKind::norm_apply, Phase::forward, i, std::move(uses));
  }

  void statistics(std::size_t i, const Norm& op) {
    const LayerFusion& layer = layers_[i];
    Saved& saved = saved_[i];
    const std::int64_t channels = shape(op.in).c;
    saved.mean = add_saved(op.name + ".mean", DType::f32, {channels});
    saved.inverse_deviation = add_saved(op.name + ".inverse_deviation", DType::f32, {channels});
    saved.factors = add_saved(op.name + ".factors", layer.inside_conv ? storage_.operations[i] : DType::f32,
                              {2, channels});
    std::vector<BufferUse> uses{reads(layer.statistics_by ? saved_[*layer.statistics_by].sums : value(op.in)),
                                reads(master(op.scale)),
                                reads(master(op.bias)),
                                updates(lowering_.statistics[op.running_mean]),
                                updates(lowering_.statistics[op.running_variance]),
                                writes(saved.factors),
                                writes(saved.mean),
                                writes(saved.inverse_deviation)};
    if (layer.statistics_by) {
      add(op.name + ".finalize", StepKind::norm_finalize, Phase::forward, i, std::move(uses));
    } else {
      add(op.name + ".statistics", StepKind::norm_statistics, Phase::forward, i, std::move(uses))
          .workspace_bytes = norm_workspace_bytes(pixels(op.in), channels);
    }
  }

  void backward(std::size_t i, const Norm& op) {
    if (!layers_[i].backward_by_conv) return norm_backward(i, op);
    const BufferId d_activated = gradient_of(lowering_, op.out, 1).front();
    const BufferId d_in = new_gradient(op.in, op.name);
    add(op.name + ".backward", StepKind::norm_backward_apply, Phase::backward, i,
        {reads(d_activated), reads(value(op.in)), reads(saved_[i].coefficients), writes(d_in)});
    contribute(op.in, d_in);
  }

  // What tells backward which elements passed the ReLU: without a residual, and of a PReLU, the norm's own
  // input; with one, the output where a convolution wrote it, and bits elsewhere.
  std::optional<BufferId> mask_of(std::size_t i, const Norm& op) const {
    if (op.activation == Activation::none) return {};
    if (!op.residual) return saved_[i].factors;
    return layers_[i].inside_conv ? value(op.out) : saved_[i].mask;
  }

  // Where a norm's gradient adds to what the other readers of its input, which come later in the Graph and so
  // earlier here, have left: in place of a buffer of its own, and of a pass that adds up both.
  std::optional<BufferId> take_sum(const Norm& op) {
    std::vector<Lowering::Contribution>& parts = lowering_.gradients[op.in];
    if (op.activation != Activation::none || op.residual || parts.size() != 1 || parts.front().shared)
      return {};
    const BufferId sum = parts.front().buffer;
    parts.clear();
    return sum;
  }

  // What reaches the output is the residual's gradient, too: where there is no ReLU, the same buffer, which
  // nobody reads after this norm unless somebody did before.
  void share_with_residual(const Norm& op, BufferId d_out) {
    const std::vector<Lowering::Contribution>& parts = lowering_.gradients[op.out];
    contribute(*op.residual, d_out, parts.front().shared);
  }

  // Two passes: sums over in and d_out, then d_in. The residual's gradient, where it isn't d_out itself, is
  // written by the first pass, which masks and adds up what reaches the output; the second one reads that in
  // place of the parts and the mask.
  void norm_backward(std::size_t i, const Norm& op) {
    const Saved& saved = saved_[i];
    const std::optional<BufferId> mask = mask_of(i, op);
    const std::vector<BufferId> d_out = gradient_of(lowering_, op.out, mask == saved.factors ? 1 : 2);
    const std::optional<BufferId> sum = d_out.size() == 1 ? take_sum(op) : std::nullopt;
    const BufferId d_in = sum ? *sum : new_gradient(op.in, op.name);
    std::vector<BufferUse> uses{reads(value(op.in)),
                                reads(d_out.front()),
                                reads(master(op.scale)),
                                reads(master(op.bias)),
                                reads(saved.mean),
                                reads(saved.inverse_deviation),
                                sum ? updates(d_in) : writes(d_in),
                                writes(gradient(op.scale)),
                                writes(gradient(op.bias))};
    double second_pass_bytes = bytes(value(op.in));
    if (mask) uses.push_back(reads(*mask));
    if (d_out.size() > 1) uses.push_back(reads(d_out.back()));
    if (op.residual && (mask || d_out.size() > 1)) {
      const BufferId d_residual = new_gradient(*op.residual, op.name);
      uses.push_back(writes(d_residual));
      contribute(*op.residual, d_residual);
      second_pass_bytes += bytes(d_residual);
    } else {
      for (BufferId part : d_out) second_pass_bytes += bytes(part);
      if (mask) second_pass_bytes += bytes(*mask);
      if (op.residual) share_with_residual(op, d_out.front());
    }
    if (op.slope) uses.insert(uses.end(), {reads(master(*op.slope)), writes(gradient(*op.slope))});
    Step& step = add(op.name + ".backward", StepKind::norm_backward, Phase::backward, i, std::move(uses));
    step.work.bytes += second_pass_bytes;
    step.workspace_bytes =
        norm_workspace_bytes(pixels(op.in), shape(op.in).c, op.slope ? kPreluSums : kNormSums);
    contribute(op.in, d_in);
  }

  void forward(std::size_t i, const Pool& op) {
    const auto norm = layers_[i].norm_in_front;
    std::vector<BufferUse> uses{reads(value(norm ? norm_in_front(i).in : op.in)), writes(value(op.out))};
    if (op.kind == Pool::Kind::max) {
      saved_[i].argmax = add_saved(op.name + ".argmax", DType::u8, nchw(shape(op.out)));
      uses.push_back(writes(*saved_[i].argmax));
    }
    if (norm) uses.push_back(reads(saved_[*norm].factors));
    add(op.name + ".forward", StepKind::pool_forward, Phase::forward, i, std::move(uses));
  }
  void backward(std::size_t i, const Pool& op) {
    const std::vector<BufferId> d_out = gradient_of(lowering_, op.out, saved_[i].argmax ? 2 : 1);
    const BufferId d_in = new_gradient(op.in, op.name);
    std::vector<BufferUse> uses{reads(d_out.front()), writes(d_in)};
    if (saved_[i].argmax) uses.push_back(reads(*saved_[i].argmax));
    if (d_out.size() > 1) uses.push_back(reads(d_out.back()));
    add(op.name + ".backward", StepKind::pool_backward, Phase::backward, i, std::move(uses));
    contribute(op.in, d_in);
  }

  void forward(std::size_t i, const Dense& op) {
    saved_[i].cast_in =
        as_dtype(storage_.operations[i], value(op.in), op.name + ".cast_in", Phase::forward, i);
    add(op.name + ".forward", StepKind::dense_forward, Phase::forward, i,
        {reads(saved_[i].cast_in), reads(storage_.weights[op.weight]), reads(master(op.bias)),
         writes(value(op.out))})
        .workspace_bytes = kDenseWorkspaceLimit;
  }
  void backward(std::size_t i, const Dense& op) {
    const BufferId d_out = gradient_of(lowering_, op.out, 1).front(), in = saved_[i].cast_in;
    add(op.name + ".backward_weights", StepKind::dense_backward_weights, Phase::backward, i,
        {reads(in), reads(d_out), writes(gradient(op.weight)), writes(gradient(op.bias))})
        .workspace_bytes = kDenseWorkspaceLimit;
    if (op.in == 0) return;
    const BufferId d_in = new_gradient(op.in, op.name, storage_.operations[i]);
    add(op.name + ".backward_data", StepKind::dense_backward_data, Phase::backward, i,
        {reads(d_out), reads(storage_.weights[op.weight]), writes(d_in)})
        .workspace_bytes = kDenseWorkspaceLimit;
    contribute_as_stored(op.in, d_in, op.name, i);
  }
  void contribute_as_stored(ValueId id, BufferId buffer, const std::string& by, std::size_t i) {
    contribute(id, as_dtype(storage_.gradients[id], buffer, by + ".cast_d_in", Phase::backward, i));
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
        {reads(value(op.in)), reads(lowering_.labels), writes(d_logits), updates(lowering_.state)})
        .workspace_bytes = kLossWorkspacePerImage * static_cast<std::size_t>(graph_.batch());
    contribute(op.in, d_logits);
  }
  void backward(std::size_t, const SoftmaxLoss&) {}

  void forward(std::size_t i, const MarginLoss& op) {
    const BufferId features = as_dtype(DType::f32, value(op.in), op.name + ".cast_in", Phase::forward, i);
    MarginBuffers& margin = saved_[i].margin;
    const std::size_t first = lowering_.program.steps.size();
    margin =
        lower_margin_forward(lowering_, i, features, storage_.weights[op.weight], storage_.operations[i]);
    if (margin.samples)
      sampled_.push_back({.op = i, .samples = *margin.samples, .sample_count = *margin.sample_count});
    const Buffer& rows = lowering_.program.buffers[margin.rows];
    lowering_.program.buffers[margin.products].bytes =
        product_bytes(op.world_size * graph_.batch(), rows.dims[0], rows.dtype);
    set_margin_workspaces(lowering_.program, first, op.world_size * graph_.batch(), rows);
  }
  void backward(std::size_t i, const MarginLoss& op) {
    const std::size_t first = lowering_.program.steps.size();
    const BufferId d_features = lower_margin_backward(lowering_, i, saved_[i].margin);
    set_margin_workspaces(lowering_.program, first, op.world_size * graph_.batch(),
                          lowering_.program.buffers[saved_[i].margin.rows]);
    contribute_as_stored(op.in, d_features, op.name, i);
  }
  const Graph& graph_;
  Storage storage_;
  Lowering& lowering_;  // of the storage
  std::vector<LayerFusion> layers_;
  std::vector<Saved> saved_;  // by op
  std::vector<SampledCentres> sampled_;
};

}  // namespace

Program describe(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits) {
  return Describer(graph, options, limits).run(options);
}

}  // namespace plumb::cuda
