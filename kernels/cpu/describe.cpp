// The training iteration on a CPU: oneDNN's operations and our own batch norm with residual and activation
// fused. The update writes a second copy of each weight in the layout that backward-data reads. Convolutions
// run directly or, where that is faster, by Winograd's algorithm. In bf16 activations, their gradients and a
// copy of each weight are bf16; masters and their gradients, statistics and losses are fp32.
#include "kernels/program/describe.h"

#include <variant>

#include "kernels/cpu/state.h"
#include "kernels/program/graph_lowering.h"
#include "kernels/program/winograd.h"

namespace plumb::cpu {
namespace {

// Margins and class centers are fp32 in every precision.
Lowering start_storage(const Graph& graph, const DescribeOptions& options) {
  const bool is_half = options.precision == Precision::bf16;
  Lowering lowering =
      start_lowering(graph, {.activations = is_half ? DType::bf16 : DType::f32}, sizeof(State));
  for (std::size_t i = 0; i < graph.ops.size(); ++i)
    if (std::holds_alternative<MarginLoss>(graph.ops[i]) || (options.fp32_head && i >= graph.head_begin))
      lowering.op_types[i] = DType::f32;
  store_in_op_types(lowering, DType::f32);
  return lowering;
}

struct Describer : GraphLowering {
  using GraphLowering::backward;
  using GraphLowering::forward;

  Describer(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits)
      : GraphLowering(start_storage(graph, options)), options_(options), limits_(limits) {}

  Program run() {
    if (options_.load_batch_every_step) load_batch(options_.normalization, 1);
    walk(*this);
    for (ParameterId p = 0; p < graph_.parameters.size(); ++p)
      if (graph_.parameters[p].trained) update(p);
    add("advance_state", AdvanceState{.state = tensors_.state}, Phase::update);
    return std::move(lowering_.program);
  }

  void forward(std::size_t i, const Conv& op) {
    set_engine(
        add(op.name + ".forward",
            ConvForward{.in = value(op.in), .weight = lowering_.weights[op.weight], .out = value(op.out)},
            Phase::forward, i),
        op, winograd(op, ConvPass::forward));
  }
  void backward(std::size_t i, const Conv& op) {
    const BufferId d_out = gradient_of(op.out);
    set_engine(add(op.name + ".backward_weights",
                   ConvBackwardWeights{.in = value(op.in), .d_out = d_out, .d_weight = gradient(op.weight)},
                   Phase::backward, i),
               op, winograd(op, ConvPass::backward_weights));
    if (op.in == 0) return;  // no instruction reads the gradient of the images
    const std::optional<WinogradPass> fast = winograd(op, ConvPass::backward_data);
    // Winograd's passes have one layout.
    const BufferId weight = fast ? lowering_.weights[op.weight] : backward_data_weight(op);
    const BufferId d_in = new_gradient(op.in, op.name);
    set_engine(add(op.name + ".backward_data",
                   ConvBackwardData{.d_out = d_out, .weight = weight, .d_in = d_in}, Phase::backward, i),
               op, fast);
    contribute(op.in, d_in);
  }
  // A copy of the weight in the layout that direct backward-data reads.
  BufferId backward_data_weight(const Conv& op) {
    Buffer copy = lowering_.program.buffers[lowering_.weights[op.weight]];
    copy.name += ".for_backward_data";
    const BufferId weight = add_buffer(lowering_.program, std::move(copy));
    tensors_.parameters[op.weight].copies.push_back(weight);
    return weight;
  }

  // Empty: the pass is computed directly.
  std::optional<WinogradPass> winograd(const Conv& op, ConvPass pass) const {
    if (options_.winograd == Winograd::never) return std::nullopt;
    const std::optional<WinogradPass> possible = winograd_pass(graph_, op, pass, limits_, options_.precision);
    const bool wanted = possible && (options_.winograd == Winograd::everywhere || is_faster(*possible));
    return wanted ? possible : std::nullopt;
  }
  void set_engine(Instruction& instruction, const Conv& op, const std::optional<WinogradPass>& fast) const {
    if (limits_.winograd_lanes == 0 || !can_be_winograd(graph_, op)) return;  // no choice
    instruction.engine = fast ? kWinograd : kDirect;
    if (!fast) return;
    instruction.work.macs = fast->macs;
    instruction.workspace_bytes = fast->workspace_bytes;
  }

  void forward(std::size_t i, const BatchNorm& op) {
    saved_[i].mean = add_saved(op.name + ".mean", DType::f32, {shape(op.in).c});
    saved_[i].inv_std = add_saved(op.name + ".inv_std", DType::f32, {shape(op.in).c});
    BatchNormForward norm{.in = value(op.in),
                          .scale = master(op.scale),
                          .bias = master(op.bias),
                          .running_mean = tensors_.statistics[op.running_mean],
                          .running_variance = tensors_.statistics[op.running_variance],
                          .out = value(op.out),
                          .mean = saved_[i].mean,
                          .inv_std = saved_[i].inv_std};
    if (op.residual) norm.residual = value(*op.residual);
    if (op.slope) norm.slope = master(*op.slope);
    add(op.name + ".forward", norm, Phase::forward, i).work.bytes +=
        bytes(value(op.in));  // statistics read the input once more
  }
  // The residual's gradient is d_out after the activation's backward; without an activation it is d_out.
  void backward(std::size_t i, const BatchNorm& op) {
    const std::vector<BufferId> d_out = gradients_of(op.out, 2);
    const bool has_d_residual = op.residual && (op.activation == Activation::relu || d_out.size() > 1);
    // Gradients that nothing else reads are overwritten: their lines are in the cache already.
    const auto over = [&](BufferId part, ValueId id, const std::string& by) {
      return is_overwritable(op.out, part) ? part : new_gradient(id, by);
    };
    const bool residual_takes_it = op.residual && d_out.size() == 1;
    const BufferId d_in =
        residual_takes_it ? new_gradient(op.in, op.name) : over(d_out.back(), op.in, op.name);
    BatchNormBackward norm = norm_backward(i, op, d_out, d_in);
    if (op.residual && op.activation == Activation::relu) norm.out = value(op.out);
    // d_in needs the complete sums over in and d_out, so both are read twice; the second pass reads the
    // residual's gradient instead of d_out if there is one.
    double read_again = bytes(value(op.in));
    if (has_d_residual) {
      const BufferId d_residual = over(d_out.front(), *op.residual, op.name + ".residual");
      norm.d_residual = d_residual;
      read_again += bytes(d_residual);
      contribute(*op.residual, d_residual);
    } else {
      for (BufferId part : d_out) read_again += bytes(part);
      if (op.residual) contribute(*op.residual, d_out[0], true);
    }
    add(op.name + ".backward", norm, Phase::backward, i).work.bytes += read_again;
    contribute(op.in, norm.d_in);
  }

  void update(ParameterId p) {
    const std::string name = graph_.parameters[p].name + ".update";
    if (const auto rows = tensors_.sampled_rows.find(p); rows != tensors_.sampled_rows.end())
      add_update_rows(lowering_, p, rows->second, name);
    else
      add(name, Update{.state = tensors_.state, .parameters = {updated_parameter(tensors_, p)}},
          Phase::update);
  }

 private:
  const DescribeOptions& options_;
  const DeviceLimits& limits_;
};

}  // namespace

Program describe(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits) {
  return Describer(graph, options, limits).run();
}

}  // namespace plumb::cpu
