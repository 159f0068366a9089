#include "kernels/cuda/plan/fusion.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "kernels/cuda/plan/block_end_shape.h"
#include "kernels/cuda/plan/choose_layout.h"
#include "kernels/cuda/plan/norm_partition.h"
#include "kernels/cuda/plan/stem_shape.h"

namespace plumb::cuda {
namespace {

// cuDNN's fused engines read 8 halves at once.
constexpr std::int64_t kChannelMultiple = 8;
constexpr const char* kUsualConvs = "fused engines are for 1x1 and 3x3, one group, channels in eights";

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
  Planner(const Graph& graph, FusionSupport support, TensorLayout layout,
          const std::vector<PlainLayer>& plain)
      : graph_(graph),
        support_(std::move(support)),
        layout_(layout),
        plain_(plain),
        readers_(readers_of_values(graph)),
        makers_(makers_of_values(graph)),
        layers_(graph.ops.size()) {}

  std::vector<LayerFusion> run() {
    for_each<Conv>([&](std::size_t i, const Conv& conv) { gather_statistics(i, conv); });
    for_each<BatchNorm>([&](std::size_t i, const BatchNorm& norm) { normalize_on_the_way(i, norm); });
    for_each<BatchNorm>([&](std::size_t i, const BatchNorm& norm) { complete_gradient(i, norm); });
    for_each<BatchNorm>([&](std::size_t i, const BatchNorm& norm) { leave_out_product(i, norm); });
    for_each<BatchNorm>([&](std::size_t i, const BatchNorm& norm) { fuse_with_reader(i, norm); });
    return std::move(layers_);
  }

 private:
  template <typename T>
  void for_each(const auto& visit) const {
    for (std::size_t i = 0; i < graph_.ops.size(); ++i)
      if (const T* op = std::get_if<T>(&graph_.ops[i])) visit(i, *op);
  }

  // Excludes a ResNet's first convolution: cuDNN has no fused engine for it, our own kernels gather its
  // statistics.
  bool has_fused_engine(const Conv& conv) const {
    const bool usual = (conv.kernel == 1 && conv.padding == 0) || (conv.kernel == 3 && conv.padding == 1);
    return usual && conv.groups == 1 && graph_.values[conv.in].shape.c % kChannelMultiple == 0 &&
           graph_.values[conv.out].shape.c % kChannelMultiple == 0;
  }

  // Reason not to use the pattern for this convolution; null if there is none.
  const std::string* reason_against(std::size_t conv, FusedPattern pattern) const {
    const auto found = std::ranges::find_if(
        plain_, [&](const PlainLayer& layer) { return layer.op == conv && layer.pattern == pattern; });
    return found == plain_.end() ? nullptr : &found->reason;
  }

  void gather_statistics(std::size_t i, const Conv& conv) {
    LayerFusion& layer = layers_[i];
    const Readers& readers = readers_[conv.out];
    const BatchNorm* norm =
        readers.size() == 1 ? std::get_if<BatchNorm>(&graph_.ops[readers.front()]) : nullptr;
    if (!support_.statistics) {
      layer.why_not_more = support_.why_none;
    } else if (!norm || norm->in != conv.out) {
      layer.why_not_more = "it isn't one norm alone that reads its output";
    } else if (!has_fused_engine(conv) && !is_stem(graph_, conv)) {
      layer.why_not_more = kUsualConvs;
    } else if (const std::string* reason = reason_against(i, FusedPattern::statistics)) {
      layer.why_not_more = *reason;
    } else {
      layer.forward.gathers_statistics = true;
      layers_[readers.front()].statistics_by = i;
    }
  }

  // By our own kernels, on any GPU: a block's end normalizes its shortcut and goes back through its norm; a
  // max pool normalizes its input, and the norm goes back through the pool. That kernel has only NHWC: in
  // NCHW windows begin at addresses of every alignment.
  void normalize_on_the_way(std::size_t i, const BatchNorm& norm) {
    if (norm.residual || readers_[norm.out].size() != 1) return;
    const std::size_t reader = readers_[norm.out].front();
    const BatchNorm* end = std::get_if<BatchNorm>(&graph_.ops[reader]);
    const Pool* pool = std::get_if<Pool>(&graph_.ops[reader]);
    const bool is_shortcut = end && end->residual == norm.out && norm.activation == Activation::none;
    const bool is_pooled = pool && pool->kind == Pool::Kind::max && norm.activation == Activation::relu;
    if (!is_shortcut && !is_pooled) return;
    layers_[i].stored = false;
    layers_[i].backward_by_end = is_shortcut;
    layers_[reader].norm_in_front = i;
    if (!is_pooled || !goes_back_through(*pool) || layout_ != TensorLayout::nhwc) return;
    layers_[i].backward_through_pool = reader;
    layers_[reader].backward_by_norm = true;
  }

  // Backward-data of the next block's first convolution comes when one other gradient of the sum is there,
  // which it adds.
  void complete_gradient(std::size_t i, const BatchNorm& norm) {
    const Readers& readers = readers_[norm.out];
    if (!support_.block_end_gradient || !norm.residual || norm.activation != Activation::relu ||
        readers.size() != 2)
      return;
    const Conv* conv = std::get_if<Conv>(&graph_.ops[readers.front()]);
    if (!conv || conv->kernel != 1 || conv->stride != 1 || conv->padding != 0 || conv->groups != 1 ||
        graph_.values[conv->in].shape.c % kBlockEndChannels != 0)
      return;
    if (const std::string* reason = reason_against(readers.front(), FusedPattern::block_end_gradient)) {
      layers_[i].why_plain_gradient = *reason;
      return;
    }
    layers_[i].masked_by_conv = true;
    layers_[readers.front()].block_end = i;
    sum_for_end(i, readers.front(), *conv);
  }

  void sum_for_end(std::size_t i, std::size_t reader, const Conv& conv) {
    if (graph_.values[conv.out].shape.c % kBlockEndStep != 0) return;
    if (const std::string* reason = reason_against(reader, FusedPattern::block_end_sums)) {
      layers_[i].why_plain_gradient = *reason;
      return;
    }
    layers_[i].backward_by_conv = true;
    layers_[reader].sums_for_end = true;
  }

  // Its statistics and backward then come from products of the input of the convolution in front, which is
  // the output of a norm. Our own kernel takes that norm's sums with the convolution's data gradient.
  void leave_out_product(std::size_t i, const BatchNorm& norm) {
    const bool masks_gradient = !layers_[i].masked_by_conv;
    if (!support_.product_norm || layout_ != TensorLayout::nhwc || !norm.residual ||
        norm.activation != Activation::relu || readers_[norm.out].size() > 2 ||
        !(masks_gradient || layers_[i].backward_by_conv))
      return;
    const Conv* conv = product_of(norm);
    if (!conv || conv->stride != 1) return;
    const std::size_t front = makers_[conv->in];
    const BatchNorm* in_front = made_by<BatchNorm>(conv->in);
    if (!in_front || in_front->residual || in_front->activation != Activation::relu ||
        readers_[conv->in].size() != 1 || !take_product(i, norm, FusedPattern::product_norm))
      return;
    layers_[makers_[norm.in]].norm_in_front = front;
    layers_[front].sums_output = true;
    layers_[front].backward_by_conv = support_.block_end_gradient;
    layers_[i].masks_gradient = masks_gradient;
    const auto shortcut = layers_[i].norm_in_front;
    if (!shortcut) return;
    leave_out_shortcut(*shortcut);
    if (masks_gradient && !layers_[*shortcut].product) layers_[*shortcut].backward_by_end = false;
  }

  // The same for the shortcut of such a block.
  void leave_out_shortcut(std::size_t i) {
    const auto& norm = std::get<BatchNorm>(graph_.ops[i]);
    const Conv* conv = product_of(norm);
    if (conv && (conv->stride == 1 || (conv->stride == 2 && takes_sampled_gradient(conv->in))))
      take_product(i, norm, FusedPattern::product_shortcut);
  }

  // Whether a gradient of every second pixel can be added where another one completes the sum: our
  // convolution's kernel doesn't do that beside the sums for two norms.
  bool takes_sampled_gradient(ValueId value) const {
    if (!made_by<BatchNorm>(value)) return false;
    const LayerFusion& end = layers_[makers_[value]];
    return end.masks_gradient ||
           (end.masked_by_conv && (!end.norm_in_front || layers_[*end.norm_in_front].product));
  }

  template <typename T>
  const T* made_by(ValueId value) const {
    return makers_[value] == kNone ? nullptr : std::get_if<T>(&graph_.ops[makers_[value]]);
  }

  // The 1x1 convolution in front of the norm, if our kernels can do without its output.
  const Conv* product_of(const BatchNorm& norm) const {
    const Conv* conv = made_by<Conv>(norm.in);
    if (!conv || readers_[norm.in].size() != 1 || conv->kernel != 1 || conv->padding != 0 ||
        conv->groups != 1)
      return nullptr;
    const std::int64_t inputs = graph_.values[conv->in].shape.c, outputs = graph_.values[conv->out].shape.c;
    return inputs % kBlockEndStep == 0 && inputs <= kMostProductInputs && outputs % kBlockEndChannels == 0 &&
                   outputs <= kMostProductOutputs && outputs >= 2 * inputs
               ? conv
               : nullptr;
  }

  // False if there is a reason against it.
  bool take_product(std::size_t i, const BatchNorm& norm, FusedPattern pattern) {
    const std::size_t product = makers_[norm.in];
    if (const std::string* reason = reason_against(product, pattern)) {
      layers_[i].why_plain_gradient = *reason;
      return false;
    }
    layers_[i].product = product;
    layers_[i].statistics_by.reset();
    layers_[product].forward.gathers_statistics = false;
    layers_[product].norm_of_product = i;
    layers_[product].by_products = !support_.block_end_gradient;
    return true;
  }

  void fuse_with_reader(std::size_t i, const BatchNorm& norm) {
    LayerFusion& layer = layers_[i];
    if (layer.product || layer.sums_output) return;
    const std::size_t first_reader = readers_[norm.out].empty() ? i : readers_[norm.out].front();
    const Conv* conv = std::get_if<Conv>(&graph_.ops[first_reader]);
    if (!layer.statistics_by) {
      layer.why_not_more = support_.statistics ? "no convolution gathers its statistics" : support_.why_none;
    } else if (norm.activation != Activation::relu) {
      layer.why_not_more = "no ReLU";
    } else if (!conv) {
      layer.why_not_more = "no convolution reads it first";
    } else if (!has_fused_engine(*conv)) {
      layer.why_not_more = kUsualConvs;
    } else if (norm.residual) {
      layer.why_not_more = "no convolution adds its residual";
    } else if (readers_[norm.out].size() > 1) {
      layer.why_not_more = "several read its output";
    } else {
      fuse_with_only_reader(i, first_reader);
    }
  }

  void fuse_with_only_reader(std::size_t i, std::size_t reader) {
    LayerFusion &layer = layers_[i], &conv = layers_[reader];
    if (const std::string* reason = reason_against(reader, FusedPattern::norm_backward_data)) {
      layer.why_not_more = *reason;
    } else if (support_.norm_backward_data) {
      layer.backward_by_conv = true;
      conv.backward_through_norm = true;
      conv.norm_in_front = i;
    } else {
      layer.why_not_more = support_.gpu + " goes back through it in no single pass";
    }
    if (!support_.normalized_input || !support_.normalized_input_weights) {
      layer.why_not_more = support_.gpu + " has no engine that normalizes what it reads";
      return;
    }
    if (!conv.forward.gathers_statistics) {
      layer.why_not_more = "its reader gathers no statistics";
      return;
    }
    if (const std::string* reason = reason_against(reader, FusedPattern::normalized_input)) {
      layer.why_not_more = *reason;
      return;
    }
    layer.inside_conv = true;
    layer.stored = false;
    conv.forward.normalizes_input = true;
    conv.weights_normalize_input = true;
    conv.norm_in_front = i;
  }

  const Graph& graph_;
  FusionSupport support_;
  TensorLayout layout_;
  const std::vector<PlainLayer>& plain_;
  std::vector<Readers> readers_;     // by ValueId
  std::vector<std::size_t> makers_;  // likewise
  std::vector<LayerFusion> layers_;  // by op
};

}  // namespace

FusionSupport fusion_support(int compute_capability, Precision precision, bool deterministic) {
  FusionSupport support{.gpu = "sm_" + std::to_string(compute_capability)};
  support.block_end_gradient =
      (precision == Precision::fp16 || precision == Precision::bf16) && compute_capability >= 80;
  support.product_norm =
      compute_capability >= (precision == Precision::bf16 || precision == Precision::tf32 ? 80 : 70);
  const bool any_engine = precision == Precision::fp16 && compute_capability >= 80;
  if (!any_engine || deterministic) {
    support.why_none = (precision == Precision::fp16 ? support.gpu : std::string(name_of(precision))) +
                       " has no fused engine of cuDNN" + (any_engine ? " that sums in a fixed order" : "");
    return support;
  }
  const bool is_hopper = compute_capability == 90;
  support.statistics = true;
  support.normalized_input = compute_capability <= 90;
  support.normalized_input_weights = compute_capability <= 90;
  support.norm_backward_data = is_hopper;
  return support;
}

FusionSupport support_of(const DescribeOptions& options, const DeviceLimits& limits) {
  if (!options.fuse) return {.why_none = "--fusion is off"};
  FusionSupport support = fusion_support(limits.compute_capability, options.precision, options.deterministic);
  support.product_norm &= !options.overlap_weights;  // the data gradient waits for the weights' there
  return support;
}

std::vector<LayerFusion> plan_fusion(const Graph& graph, const DescribeOptions& options,
                                     const DeviceLimits& limits) {
  return Planner(graph, support_of(options, limits), choose_layout(graph, options, limits), options.plain)
      .run();
}

}  // namespace plumb::cuda
