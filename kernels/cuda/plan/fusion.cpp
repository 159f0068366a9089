#include "kernels/cuda/plan/fusion.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "kernels/cuda/plan/block_end_shape.h"
#include "kernels/cuda/plan/norm_partition.h"
#include "kernels/cuda/plan/stem_shape.h"
#include "kernels/cuda/plan/storage.h"

namespace plumb::cuda {
namespace {

// cuDNN's fused engines read 8 halves at once.
constexpr std::int64_t kChannelMultiple = 8;

using Readers = std::vector<std::size_t>;  // ops, in the Graph's order

std::vector<ValueId> inputs_of(const Op& op) {
  std::vector<ValueId> inputs{std::visit([](const auto& one) { return one.in; }, op)};
  if (const BatchNorm* norm = std::get_if<BatchNorm>(&op); norm && norm->residual)
    inputs.push_back(*norm->residual);
  return inputs;
}

// By ValueId.
std::vector<Readers> readers_of_values(const Graph& graph) {
  std::vector<Readers> readers(graph.values.size());
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    for (ValueId value : inputs_of(graph.ops[i])) readers[value].push_back(i);
  }
  return readers;
}

// The op whose output it is, by ValueId; kNone for the images.
std::vector<std::size_t> makers_of_values(const Graph& graph) {
  std::vector<std::size_t> makers(graph.values.size(), kNone);
  for (std::size_t i = 0; i < graph.ops.size(); ++i)
    std::visit(
        [&](const auto& op) {
          if constexpr (requires { op.out; }) makers[op.out] = i;
        },
        graph.ops[i]);
  return makers;
}

class Planner {
 public:
  Planner(const Graph& graph, const FusionSupport& support, const std::vector<PlainLayer>& plain)
      : graph_(graph),
        support_(support),
        plain_(plain),
        readers_(readers_of_values(graph)),
        makers_(makers_of_values(graph)),
        layers_(graph.ops.size()) {
    for_each<Conv>([&](std::size_t i, const Conv&) { layers_[i] = FusedConv{}; });
    for_each<BatchNorm>([&](std::size_t i, const BatchNorm&) { layers_[i] = FusedNorm{}; });
  }

  std::vector<LayerFusion> run() {
    for_each<Conv>([&](std::size_t i, const Conv& op) { gather_statistics(i, op); });
    for_each<BatchNorm>([&](std::size_t i, const BatchNorm& op) { normalize_on_the_way(i, op); });
    for_each<BatchNorm>([&](std::size_t i, const BatchNorm& op) { complete_gradient(i, op); });
    for_each<BatchNorm>([&](std::size_t i, const BatchNorm& op) { leave_out_product(i, op); });
    for_each<BatchNorm>([&](std::size_t i, const BatchNorm& op) { fuse_with_reader(i, op); });
    return std::move(layers_);
  }

 private:
  template <typename T>
  void for_each(const auto& visit) const {
    for (std::size_t i = 0; i < graph_.ops.size(); ++i)
      if (const T* op = std::get_if<T>(&graph_.ops[i])) visit(i, *op);
  }

  FusedConv& conv(std::size_t i) { return std::get<FusedConv>(layers_[i]); }
  FusedNorm& norm(std::size_t i) { return std::get<FusedNorm>(layers_[i]); }
  const FusedNorm& norm(std::size_t i) const { return std::get<FusedNorm>(layers_[i]); }

  // Excludes a ResNet's first convolution: cuDNN has no fused engine for it, our own kernels gather its
  // statistics.
  bool has_fused_engine(const Conv& op) const {
    const bool usual = (op.kernel == 1 && op.padding == 0) || (op.kernel == 3 && op.padding == 1);
    return usual && op.groups == 1 && graph_.values[op.in].shape.c % kChannelMultiple == 0 &&
           graph_.values[op.out].shape.c % kChannelMultiple == 0;
  }

  // Whether there is a reason not to use the pattern for this convolution.
  bool is_excluded(std::size_t i, FusedPattern pattern) const {
    return std::ranges::any_of(
        plain_, [&](const PlainLayer& layer) { return layer.op == i && layer.pattern == pattern; });
  }

  void gather_statistics(std::size_t i, const Conv& op) {
    const Readers& readers = readers_[op.out];
    const BatchNorm* reader =
        readers.size() == 1 ? std::get_if<BatchNorm>(&graph_.ops[readers.front()]) : nullptr;
    if (!support_.statistics || !reader || reader->in != op.out ||
        !(has_fused_engine(op) || is_stem(graph_, op)) || is_excluded(i, FusedPattern::statistics))
      return;
    conv(i).gathers_statistics = true;
    norm(readers.front()).statistics = FusedNorm::Statistics::by_conv;
    norm(readers.front()).conv = i;
  }

  // By our own kernels, on any GPU: a block's end normalizes its shortcut and goes back through its norm; a
  // max pool normalizes its input, and the norm goes back through the pool.
  void normalize_on_the_way(std::size_t i, const BatchNorm& op) {
    if (op.residual || readers_[op.out].size() != 1) return;
    const std::size_t reader = readers_[op.out].front();
    const BatchNorm* end = std::get_if<BatchNorm>(&graph_.ops[reader]);
    const Pool* pool = std::get_if<Pool>(&graph_.ops[reader]);
    if (end && end->residual == op.out && op.activation == Activation::none) {
      norm(i).output = FusedNorm::Output::not_stored;
      norm(i).backward = FusedNorm::ByEnd{};
      norm(reader).shortcut = i;
    } else if (pool && goes_back_through(*pool) && op.activation == Activation::relu) {
      norm(i).output = FusedNorm::Output::not_stored;
      norm(i).backward = FusedNorm::ThroughPool{reader};
      layers_[reader] = FusedPool{i};
    }
  }

  // Backward-data of the next block's first convolution comes when one other gradient of the sum is there,
  // which it adds. It may also sum the gradient for the end's norm.
  void complete_gradient(std::size_t i, const BatchNorm& op) {
    const Readers& readers = readers_[op.out];
    if (!support_.block_end_gradient || !op.residual || op.activation != Activation::relu ||
        readers.size() != 2)
      return;
    const std::size_t reader = readers.front();
    const Conv* by = std::get_if<Conv>(&graph_.ops[reader]);
    if (!by || by->kernel != 1 || by->stride != 1 || by->padding != 0 || by->groups != 1 ||
        graph_.values[by->in].shape.c % kBlockEndChannels != 0 ||
        graph_.values[by->out].shape.c % kBlockEndStep != 0 ||
        is_excluded(reader, FusedPattern::block_end_gradient))
      return;
    const bool sums = !is_excluded(reader, FusedPattern::block_end_sums);
    norm(i).gradient_comes_masked = true;
    if (sums) norm(i).backward = FusedNorm::OnePass{};
    conv(reader).data_gradient = FusedConv::CompletedGradient{.end = i, .sums = sums};
  }

  // Its statistics and backward then come from products of the input of the convolution in front, which is
  // the output of a norm. Our own kernel takes that norm's sums with the convolution's data gradient.
  void leave_out_product(std::size_t i, const BatchNorm& op) {
    const bool masks_gradient = !norm(i).gradient_comes_masked;
    if (!support_.product_norm || !op.residual || op.activation != Activation::relu ||
        readers_[op.out].size() > 2 ||
        !(masks_gradient || std::holds_alternative<FusedNorm::OnePass>(norm(i).backward)))
      return;
    const Conv* product = product_of(op);
    if (!product || product->stride != 1) return;
    const std::size_t front = makers_[product->in];
    const BatchNorm* in_front = made_by<BatchNorm>(product->in);
    if (!in_front || in_front->residual || in_front->activation != Activation::relu ||
        readers_[product->in].size() != 1 || !take_product(i, op, front, FusedPattern::product_norm))
      return;
    norm(front).sums_output = true;
    if (support_.block_end_gradient) norm(front).backward = FusedNorm::OnePass{};
    norm(i).backward = FusedNorm::ByProduct{masks_gradient};
    const auto shortcut = norm(i).shortcut;
    if (!shortcut) return;
    leave_out_shortcut(*shortcut);
    if (masks_gradient && !norm(*shortcut).is_by_product()) norm(*shortcut).backward = FusedNorm::TwoPasses{};
  }

  // The same for the shortcut of such a block.
  void leave_out_shortcut(std::size_t i) {
    const auto& op = std::get<BatchNorm>(graph_.ops[i]);
    const Conv* product = product_of(op);
    if (product && (product->stride == 1 || (product->stride == 2 && takes_sampled_gradient(product->in))))
      take_product(i, op, {}, FusedPattern::product_shortcut);
  }

  // Whether a gradient of every second pixel can be added where another one completes the sum: our
  // convolution's kernel doesn't do that beside the sums for two norms.
  bool takes_sampled_gradient(ValueId value) const {
    if (!made_by<BatchNorm>(value)) return false;
    const FusedNorm& end = norm(makers_[value]);
    return end.masks_gradient() ||
           (end.gradient_comes_masked && (!end.shortcut || norm(*end.shortcut).is_by_product()));
  }

  template <typename T>
  const T* made_by(ValueId value) const {
    return makers_[value] == kNone ? nullptr : std::get_if<T>(&graph_.ops[makers_[value]]);
  }

  // The 1x1 convolution in front of the norm, if our kernels can do without its output.
  const Conv* product_of(const BatchNorm& op) const {
    const Conv* product = made_by<Conv>(op.in);
    if (!product || readers_[op.in].size() != 1 || product->kernel != 1 || product->padding != 0 ||
        product->groups != 1)
      return nullptr;
    const std::int64_t inputs = graph_.values[product->in].shape.c,
                       outputs = graph_.values[product->out].shape.c;
    return inputs % kBlockEndStep == 0 && inputs <= kMostProductInputs && outputs % kBlockEndChannels == 0 &&
                   outputs <= kMostProductOutputs && outputs >= 2 * inputs
               ? product
               : nullptr;
  }

  // False if there is a reason against it.
  bool take_product(std::size_t i, const BatchNorm& op, std::optional<std::size_t> norm_in_front,
                    FusedPattern pattern) {
    const std::size_t product = makers_[op.in];
    if (is_excluded(product, pattern)) return false;
    norm(i).statistics = FusedNorm::Statistics::by_product;
    norm(i).conv = product;
    layers_[product] =
        UnstoredConv{.norm = i, .norm_in_front = norm_in_front, .by_products = !support_.block_end_gradient};
    return true;
  }

  void fuse_with_reader(std::size_t i, const BatchNorm& op) {
    if (norm(i).is_by_product() || norm(i).sums_output || norm(i).statistics == FusedNorm::Statistics::own ||
        op.activation != Activation::relu || op.residual || readers_[op.out].size() != 1)
      return;
    const std::size_t reader = readers_[op.out].front();
    const Conv* by = std::get_if<Conv>(&graph_.ops[reader]);
    FusedConv* fused = std::get_if<FusedConv>(&layers_[reader]);
    if (!by || !has_fused_engine(*by) || !fused) return;
    if (support_.norm_backward_data && !is_excluded(reader, FusedPattern::norm_backward_data)) {
      norm(i).backward = FusedNorm::OnePass{};
      fused->data_gradient = FusedConv::ThroughNorm{i};
    }
    if (support_.normalized_input && support_.normalized_input_weights && fused->gathers_statistics &&
        !is_excluded(reader, FusedPattern::normalized_input)) {
      norm(i).output = FusedNorm::Output::inside_conv;
      fused->normalizes = i;
    }
  }

  const Graph& graph_;
  FusionSupport support_;
  const std::vector<PlainLayer>& plain_;
  std::vector<Readers> readers_;     // by ValueId
  std::vector<std::size_t> makers_;  // likewise
  std::vector<LayerFusion> layers_;  // by op
};

}  // namespace

FusionSupport fusion_support(int compute_capability, Precision precision, bool deterministic) {
  FusionSupport support;
  support.block_end_gradient =
      (precision == Precision::fp16 || precision == Precision::bf16) && compute_capability >= 80;
  support.product_norm =
      compute_capability >= (precision == Precision::bf16 || precision == Precision::tf32 ? 80 : 70);
  if (precision != Precision::fp16 || compute_capability < 80 || deterministic) return support;
  const bool is_hopper = compute_capability == 90;
  support.statistics = true;
  support.normalized_input = compute_capability <= 90;
  support.normalized_input_weights = compute_capability <= 90;
  support.norm_backward_data = is_hopper;
  return support;
}

std::vector<LayerFusion> plan_fusion(const Graph& graph, const DescribeOptions& options,
                                     const DeviceLimits& limits) {
  FusionSupport support;
  if (options.fuse)
    support = fusion_support(limits.compute_capability, options.precision, options.deterministic);
  return Planner(graph, support, options.plain).run();
}

}  // namespace plumb::cuda
