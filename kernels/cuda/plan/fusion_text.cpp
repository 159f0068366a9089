#include <string>
#include <variant>

#include "base/text.h"
#include "base/text_table.h"
#include "kernels/cuda/plan/fusion.h"

namespace plumb::cuda {
namespace {

// Why neither of a layer's patterns is more.
std::string reasons(const LayerFusion& layer) {
  std::string text = layer.why_plain_gradient;
  if (!layer.why_not_more.empty()) append_part(text, layer.why_not_more, "; ");
  return text;
}

// Layer, forward, backward, why not more; empty for other operations.
TextRow row_of(const Graph& graph, const Conv& conv, const LayerFusion& layer) {
  TextRow row{conv.name, "", "", layer.why_not_more};
  if (layer.forward.normalizes_input)
    row[1] = "normalizes " + name_of(graph.ops[*layer.norm_in_front]) + " (ConvBNfprop)";
  if (layer.forward.gathers_statistics) append_part(row[1], "statistics");
  if (layer.norm_of_product) {
    row[1] = "never stored: ends the block with " + name_of(graph.ops[*layer.norm_of_product]);
    row[2] = "from products";
    if (layer.norm_in_front && !layer.by_products)
      row[2] += ", with the sums of " + name_of(graph.ops[*layer.norm_in_front]);
  }
  if (layer.weights_normalize_input) row[2] = "ConvBNwgrad";
  if (layer.backward_through_norm) append_part(row[2], "DgradDreluBNBwdWeight");
  if (layer.block_end)
    append_part(row[2], (layer.sums_for_end ? "adds, masks and sums the gradient of "
                                            : "adds and masks the gradient of ") +
                            name_of(graph.ops[*layer.block_end]));
  return row;
}

TextRow row_of(const Graph& graph, const BatchNorm& norm, const LayerFusion& layer) {
  TextRow row{norm.name, "", "", reasons(layer)};
  if (layer.statistics_by) row[1] = "statistics by " + name_of(graph.ops[*layer.statistics_by]);
  if (!layer.stored) append_part(row[1], "never stored");
  if (layer.norm_in_front) append_part(row[1], "normalizes " + name_of(graph.ops[*layer.norm_in_front]));
  if (layer.product)
    append_part(row[1], "statistics by products of " + name_of(graph.ops[*layer.product]) + "'s input");
  if (layer.sums_output) append_part(row[1], "sums its output");
  if (layer.masked_by_conv) row[2] = "its output's gradient comes masked";
  if (layer.masks_gradient) row[2] = "masks and sums its output's gradient";
  if (layer.backward_by_conv) row[2] = "sums with its output's gradient";
  if (layer.backward_through_pool) row[2] = "through " + name_of(graph.ops[*layer.backward_through_pool]);
  if (layer.backward_by_end) row[2] = "with the norm that it is added to";
  return row;
}

TextRow row_of(const Graph&, const auto&, const LayerFusion&) {
  return {};
}

}  // namespace

std::string fusion_text(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits) {
  const FusionSupport support = support_of(options, limits);
  const std::string title = fmt::format("fusion on {}, {}: ", limits.name, name_of(options.precision));
  if (!support.statistics && !support.product_norm) return title + "none, " + support.why_none + "\n";
  const std::vector<LayerFusion> layers = plan_fusion(graph, options, limits);
  std::vector<TextRow> rows{{"layer", "forward", "backward", "why not more"}};
  std::size_t statistics = 0, unstored = 0, backward = 0, masked = 0, products = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    TextRow row = std::visit([&](const auto& op) { return row_of(graph, op, layers[i]); }, graph.ops[i]);
    if (!row.empty()) rows.push_back(std::move(row));
    statistics += layers[i].forward.gathers_statistics;
    unstored += !layers[i].stored;
    backward += layers[i].backward_by_conv;
    masked += layers[i].masked_by_conv;
    products += layers[i].product.has_value();
  }
  return fmt::format(
      "{}of the norms, {} have their statistics from a convolution, {} are never stored, "
      "{} have their backward sums from a convolution, {} have their output's "
      "gradient summed and masked by one, {} end a block without their convolution's output\n{}",
      title, statistics, unstored, backward, masked, products, padded_table(rows, "l", "  "));
}

}  // namespace plumb::cuda
