// The training step on an NVIDIA GPU, fused where plan_fusion() allows it (docs/explanation/gpu-fusion.md).
// Batch norm forward is statistics, and one pass that normalizes, adds a residual and applies the activation.
// Backward is one instruction. One multi-tensor update also writes the half-precision copies of the weights.
#include "kernels/program/describe.h"

#include <stdexcept>
#include <utility>

#include "kernels/cuda/plan/describe_block_end.h"
#include "kernels/cuda/plan/margin_partition.h"

namespace plumb::cuda {
namespace {

struct Describer : BlockEndLowering {
  using BlockEndLowering::backward;
  using BlockEndLowering::data_gradient;
  using BlockEndLowering::forward;
  using GraphLowering::backward;
  using GraphLowering::forward;

  Describer(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits)
      : BlockEndLowering(graph, options, limits, plan_fusion(graph, options, limits)) {
    lowering_.program.allow_tf32 = options.precision == Precision::tf32 || options.tf32_head;
  }

  Program run(const DescribeOptions& options) {
    if (options.load_batch_every_step) load_batch(options.normalization, 2);
    walk(*this);
    set_workspaces(graph_, lowering_.program);
    update(options.scale_loss);
    return std::move(lowering_.program);
  }

  // The end of an iteration, once every gradient is complete. One instruction searches for overflows, if the
  // loss is scaled; one updates all trained parameters; one per set of sampled centers updates those rows.
  void update(bool scale_loss) {
    std::optional<BufferId> overflow;
    if (scale_loss) overflow = find_overflow();
    for (const auto& [parameter, rows] : tensors_.sampled_rows)
      add_update_rows(lowering_, parameter, rows, graph_.parameters[parameter].name + ".update_rows",
                      overflow)
          .op = graph_.ops.size() - 1;  // the margin loss
    Update update{.state = tensors_.state, .overflow = overflow, .parameters = {}};
    for (ParameterId id = 0; id < graph_.parameters.size(); ++id)
      if (graph_.parameters[id].trained && !tensors_.sampled_rows.contains(id))
        update.parameters.push_back(updated_parameter(tensors_, id));
    add("update", std::move(update), Phase::update);
    add("advance_state", AdvanceState{.state = tensors_.state, .overflow = overflow}, Phase::update);
  }
  BufferId find_overflow() {
    FindOverflow search{
        .overflow = add_buffer(lowering_.program,
                               {.name = "overflow", .role = Role::overflow, .dims = {1}, .persistent = true}),
        .gradients = {}};
    for (ParameterId id = 0; id < graph_.parameters.size(); ++id)
      if (graph_.parameters[id].trained) search.gradients.emplace_back(gradient(id));
    add("find_overflow", search, Phase::update);
    return search.overflow;
  }

  void forward(std::size_t i, const Conv& op) {
    if (const auto* product = std::get_if<UnstoredConv>(&layers_[i])) return forward(i, op, *product);
    const auto& layer = std::get<FusedConv>(layers_[i]);
    ConvForward conv{.in = value(op.in), .weight = lowering_.weights[op.weight], .out = value(op.out)};
    if (layer.normalizes) {
      conv.in = value(norm_at(*layer.normalizes).in);
      conv.scale_shift = saved_[*layer.normalizes].scale_shift;
    }
    if (layer.gathers_statistics) {
      saved_[i].sums = add_saved(op.name + ".sums", DType::f32, {2, shape(op.out).c});
      conv.sums = saved_[i].sums;
    }
    add(op.name + ".forward", conv, Phase::forward, i);
  }
  void backward(std::size_t i, const Conv& op) {
    if (const auto* product = std::get_if<UnstoredConv>(&layers_[i])) return backward(i, op, *product);
    const auto& layer = std::get<FusedConv>(layers_[i]);
    const BufferId d_out = gradient_of(op.out);
    ConvBackwardWeights weights{.in = value(op.in), .d_out = d_out, .d_weight = gradient(op.weight)};
    if (layer.normalizes) {
      weights.in = value(norm_at(*layer.normalizes).in);
      weights.scale_shift = saved_[*layer.normalizes].scale_shift;
    }
    add(op.name + ".backward_weights", weights, Phase::backward, i);
    if (op.in == 0) return;  // no instruction reads the gradient of the images
    const BufferId d_in = new_gradient(op.in, op.name);
    const Operation data = std::visit(
        [&](const auto& way) { return Operation(data_gradient(op, way, d_out, d_in)); }, layer.data_gradient);
    contribute(op.in, d_in);
    add(op.name + ".backward_data", data, Phase::backward, i);
  }

  ConvBackwardData data_gradient(const Conv& op, const FusedConv::PlainGradient&, BufferId d_out,
                                 BufferId d_in) {
    return {.d_out = d_out, .weight = lowering_.weights[op.weight], .d_in = d_in};
  }

  // The norm's own backward ends with these coefficients.
  ConvNormBackwardData data_gradient(const Conv& op, const FusedConv::ThroughNorm& through, BufferId d_out,
                                     BufferId d_activated) {
    const BatchNorm& norm = norm_at(through.norm);
    Saved& saved = saved_[through.norm];
    saved.coefficients = add_coefficients(norm, 1);
    return {.d_out = d_out,
            .weight = lowering_.weights[op.weight],
            .norm_in = value(norm.in),
            .bias = master(norm.bias),
            .mean = saved.mean,
            .inv_std = saved.inv_std,
            .scale = master(norm.scale),
            .d_activated = d_activated,
            .d_scale = gradient(norm.scale),
            .d_bias = gradient(norm.bias),
            .coefficients = saved.coefficients};
  }

  void forward(std::size_t i, const BatchNorm& op) {
    const std::optional<BatchNormFinalize> finalize = statistics(i, op);
    const FusedNorm& layer = fused(i);
    if (layer.output != FusedNorm::Output::stored) return;
    if (layer.is_by_product()) return end_with_product(i, op);
    Saved& saved = saved_[i];
    BatchNormApply apply{.in = value(op.in), .out = value(op.out), .finalize = finalize};
    if (!finalize) apply.scale_shift = saved.scale_shift;
    if (op.activation == Activation::relu && op.residual) {
      saved.relu_mask = add_saved(op.name + ".mask", DType::u8, {(shape(op.in).elements() + 7) / 8});
      apply.relu_mask = saved.relu_mask;
    }
    if (layer.shortcut) {
      apply.residual = value(norm_at(*layer.shortcut).in);
      apply.residual_scale_shift = saved_[*layer.shortcut].scale_shift;
    } else if (op.residual) {
      apply.residual = value(*op.residual);
    }
    if (op.slope) apply.slope = master(*op.slope);
    if (layer.sums_output) {
      saved.channel_sums = add_saved(op.name + ".channel_sums", DType::f32, {shape(op.out).c});
      apply.out_sums = saved.channel_sums;
      apply.counters = counters_;
    }
    add(op.name + ".forward", apply, Phase::forward, i);
  }

  // Returns what is left for the pass that stores the norm's output.
  std::optional<BatchNormFinalize> statistics(std::size_t i, const BatchNorm& op) {
    const FusedNorm& layer = fused(i);
    Saved& saved = saved_[i];
    const std::int64_t channels = shape(op.in).c;
    if (!layer.is_by_product()) saved.mean = add_saved(op.name + ".mean", DType::f32, {channels});
    saved.inv_std = add_saved(op.name + ".inv_std", DType::f32, {channels});
    saved.scale_shift = add_saved(
        op.name + ".scale_shift",
        layer.output == FusedNorm::Output::inside_conv ? lowering_.op_types[i] : DType::f32, {2, channels});
    BatchNormMoments moments{.scale = master(op.scale),
                             .bias = master(op.bias),
                             .running_mean = tensors_.statistics[op.running_mean],
                             .running_variance = tensors_.statistics[op.running_variance],
                             .scale_shift = saved.scale_shift,
                             .inv_std = saved.inv_std};
    if (!layer.is_by_product()) moments.mean = saved.mean;
    if (layer.is_by_product()) {
      statistics_of_product(i, moments);
    } else if (layer.statistics == FusedNorm::Statistics::by_conv) {
      const BatchNormFinalize finalize{.sums = saved_[layer.conv].sums, .moments = moments};
      if (layer.output == FusedNorm::Output::stored) return finalize;
      add(op.name + ".finalize", finalize, Phase::forward, i);
    } else {
      add(op.name + ".statistics",
          BatchNormStatistics{.in = value(op.in), .moments = moments, .counters = counters_}, Phase::forward,
          i);
    }
    return {};
  }

  void backward(std::size_t i, const BatchNorm& op) {
    std::visit([&](const auto& way) { backward(i, op, way); }, fused(i).backward);
  }
  void backward(std::size_t, const BatchNorm&, const FusedNorm::ByEnd&) {}

  // A convolution has computed the sums, at a block's end those of its shortcut's norm, too.
  void backward(std::size_t i, const BatchNorm& op, const FusedNorm::OnePass&) {
    const BufferId d_activated = gradient_of(op.out), d_in = new_gradient(op.in, op.name);
    BatchNormBackwardApply norm{
        .d_activated = d_activated, .in = value(op.in), .coefficients = saved_[i].coefficients, .d_in = d_in};
    const auto shortcut = fused(i).shortcut;
    if (shortcut) {
      norm.shortcut_in = value(norm_at(*shortcut).in);
      norm.d_shortcut_in = new_gradient(norm_at(*shortcut).in, norm_at(*shortcut).name);
    } else if (op.residual) {
      share_with_residual(op, d_activated);
    }
    add(op.name + ".backward", norm, Phase::backward, i);
    contribute(op.in, d_in);
    if (shortcut) contribute(norm_at(*shortcut).in, *norm.d_shortcut_in);
  }

  // Sets the operand that gives the activation's mask. Without a residual, and for a PReLU: the norm's own
  // input. With a residual: see set_end_mask(). Returns it.
  std::optional<BufferId> set_mask(std::size_t i, const BatchNorm& op, BatchNormBackward& norm) const {
    const Saved& saved = saved_[i];
    if (op.residual) return set_end_mask(i, op, norm);
    if (op.activation == Activation::none) return {};
    return norm.scale_shift = saved.scale_shift, saved.scale_shift;
  }
  // At a block's end: none if its gradient comes masked, else bits.
  std::optional<BufferId> set_end_mask(std::size_t i, const BatchNorm& op, auto& norm) const {
    if (op.activation == Activation::none || fused(i).gradient_comes_masked) return {};
    norm.relu_mask = saved_[i].relu_mask;
    return saved_[i].relu_mask;
  }

  // The buffer that a norm's gradient can be added to: the sum left by its input's other readers, which come
  // later in the Graph and so earlier here. Saves a buffer and a pass that adds both.
  std::optional<BufferId> take_sum(const BatchNorm& op) {
    std::vector<Lowering::Contribution>& parts = lowering_.gradients[op.in];
    if (op.activation != Activation::none || op.residual || parts.size() != 1 || parts.front().shared)
      return {};
    const BufferId sum = parts.front().buffer;
    parts.clear();
    return sum;
  }

  // Two passes: sums over in and d_out, then d_in. If the residual's gradient isn't d_out itself, the first
  // pass writes it: the masked sum of the output's gradients. The second pass reads that instead of the parts
  // and the mask.
  void backward(std::size_t i, const BatchNorm& op, const FusedNorm::TwoPasses&) {
    if (const auto shortcut = fused(i).shortcut) return pair_backward(i, op, *shortcut);
    const bool masks_by_input = op.activation != Activation::none && !op.residual;
    const std::vector<BufferId> d_out = gradients_of(op.out, masks_by_input ? 1 : 2);
    const std::optional<BufferId> sum = d_out.size() == 1 ? take_sum(op) : std::nullopt;
    BatchNormBackward norm =
        norm_backward(i, op, d_out, {sum ? *sum : new_gradient(op.in, op.name), sum.has_value()});
    norm.counters = counters_;
    const std::optional<BufferId> mask = set_mask(i, op, norm);
    double second_pass_bytes = bytes(value(op.in));
    if (op.residual && (mask || d_out.size() > 1)) {
      const BufferId d_residual = new_gradient(*op.residual, op.name);
      norm.d_residual = d_residual;
      contribute(*op.residual, d_residual);
      second_pass_bytes += bytes(d_residual);
    } else {
      for (BufferId part : d_out) second_pass_bytes += bytes(part);
      if (mask) second_pass_bytes += bytes(*mask);
      if (op.residual) share_with_residual(op, d_out.front());
    }
    add(op.name + ".backward", norm, Phase::backward, i).work.bytes += second_pass_bytes;
    contribute(op.in, norm.d_in);
  }

  BatchNormPairBackward::Norm of_pair(std::size_t i, const BatchNorm& op) {
    return {.in = value(op.in),
            .scale = master(op.scale),
            .mean = saved_[i].mean,
            .inv_std = saved_[i].inv_std,
            .d_in = new_gradient(op.in, op.name),
            .d_scale = gradient(op.scale),
            .d_bias = gradient(op.bias)};
  }

  // The same for a block's end and its shortcut's norm at once. The shortcut's gradient is where the first
  // pass leaves the masked sum.
  void pair_backward(std::size_t i, const BatchNorm& op, std::size_t shortcut_norm) {
    const BatchNorm& shortcut = norm_at(shortcut_norm);
    const std::vector<BufferId> d_out = gradients_of(op.out, 2);
    BatchNormPairBackward pair{.norm = of_pair(i, op),
                               .shortcut = of_pair(shortcut_norm, shortcut),
                               .d_out = d_out.front(),
                               .counters = counters_};
    if (d_out.size() > 1) pair.second_d_out = d_out.back();
    double more_bytes = bytes(value(op.in)) + bytes(value(shortcut.in)) + bytes(d_out.front());
    if (set_end_mask(i, op, pair) || pair.second_d_out) more_bytes += bytes(pair.shortcut.d_in);
    add(op.name + ".backward", pair, Phase::backward, i).work.bytes += more_bytes;
    contribute(op.in, pair.norm.d_in);
    contribute(shortcut.in, pair.shortcut.d_in);
  }

  void forward(std::size_t i, const Pool& op) {
    if (op.kind == Pool::Kind::global_average) return GraphLowering::forward(i, op);
    const auto* fused = std::get_if<FusedPool>(&layers_[i]);
    if (!fused)
      throw std::logic_error(op.name +
                             ": GPUs have only max pools of 3 x 3 with stride 2, behind a norm and a ReLU");
    const BufferId in = value(norm_at(fused->norm).in);
    saved_[i].winners =
        add_saved(op.name + ".winners", lowering_.program.buffers[in].dtype, nchw(shape(op.out)));
    pool_forward(i, op, in, saved_[fused->norm].scale_shift, saved_[i].winners);
  }
  // The norm in front of a max pool goes back through it.
  void backward(std::size_t i, const Pool& op) {
    if (op.kind == Pool::Kind::global_average) GraphLowering::backward(i, op);
  }

  // Two passes: sums over the pool's winners and its output's gradients, then d_in from in, these gradients
  // and argmax.
  void backward(std::size_t i, const BatchNorm& op, const FusedNorm::ThroughPool& through) {
    const std::size_t pool = through.pool;
    const std::vector<BufferId> d_out = gradients_of(std::get<Pool>(graph_.ops[pool]).out, 2);
    BatchNormPoolBackward norm{.in = value(op.in),
                               .winners = *saved_[pool].winners,
                               .argmax = *saved_[pool].argmax,
                               .d_out = d_out.front(),
                               .scale = master(op.scale),
                               .mean = saved_[i].mean,
                               .inv_std = saved_[i].inv_std,
                               .scale_shift = saved_[i].scale_shift,
                               .d_in = new_gradient(op.in, op.name),
                               .d_scale = gradient(op.scale),
                               .d_bias = gradient(op.bias),
                               .counters = counters_};
    if (d_out.size() > 1) norm.second_d_out = d_out.back();
    Instruction& instruction = add(op.name + ".backward", norm, Phase::backward, i);
    for (BufferId part : d_out) instruction.work.bytes += bytes(part);
    contribute(op.in, norm.d_in);
  }

  void forward(std::size_t i, const MarginLoss& op) {
    GraphLowering::forward(i, op);
    const Buffer& rows = lowering_.program.buffers[saved_[i].margin.rows];
    lowering_.program.buffers[saved_[i].margin.products].bytes =
        product_bytes(op.world_size * graph_.batch(), rows.dims[0], rows.dtype);
  }
};

}  // namespace

Program describe(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits) {
  return Describer(graph, options, limits).run(options);
}

}  // namespace plumb::cuda
