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

// Forward and backward.
struct Cells {
  std::string forward, backward;
};

Cells cells_of(const Graph& graph, const FusedConv& conv) {
  Cells cells;
  if (conv.normalizes) {
    cells.forward = "normalizes " + name_of(graph.ops[*conv.normalizes]) + " (ConvBNfprop)";
    cells.backward = "ConvBNwgrad";
  }
  if (conv.gathers_statistics) append_part(cells.forward, "statistics");
  if (std::get_if<FusedConv::ThroughNorm>(&conv.data_gradient))
    append_part(cells.backward, "DgradDreluBNBwdWeight");
  if (const auto* completed = std::get_if<FusedConv::CompletedGradient>(&conv.data_gradient))
    append_part(cells.backward, (completed->sums ? "adds, masks and sums the gradient of "
                                                 : "adds and masks the gradient of ") +
                                    name_of(graph.ops[completed->end]));
  return cells;
}

Cells cells_of(const Graph& graph, const UnstoredConv& conv) {
  Cells cells{"never stored: ends the block with " + name_of(graph.ops[conv.norm]), "from products"};
  if (conv.norm_in_front && !conv.by_products)
    cells.backward += ", with the sums of " + name_of(graph.ops[*conv.norm_in_front]);
  return cells;
}

// Whether a convolution sums the gradient of its output.
bool is_summed(const FusedNorm& norm) {
  const auto* product = std::get_if<FusedNorm::ByProduct>(&norm.backward);
  return std::get_if<FusedNorm::OnePass>(&norm.backward) || (product && !product->masks_gradient);
}

std::string backward_of(const Graph& graph, const FusedNorm& norm) {
  if (std::get_if<FusedNorm::ByEnd>(&norm.backward)) return "with the norm that it is added to";
  if (const auto* through = std::get_if<FusedNorm::ThroughPool>(&norm.backward))
    return "through " + name_of(graph.ops[through->pool]);
  if (norm.masks_gradient()) return "masks and sums its output's gradient";
  if (is_summed(norm)) return "sums with its output's gradient";
  return norm.gradient_comes_masked ? "its output's gradient comes masked" : "";
}

Cells cells_of(const Graph& graph, const FusedNorm& norm) {
  std::string forward;
  if (norm.statistics == FusedNorm::Statistics::by_conv)
    forward = "statistics by " + name_of(graph.ops[norm.conv]);
  if (norm.output != FusedNorm::Output::stored) append_part(forward, "never stored");
  if (norm.shortcut) append_part(forward, "normalizes " + name_of(graph.ops[*norm.shortcut]));
  if (norm.is_by_product())
    append_part(forward, "statistics by products of " + name_of(graph.ops[norm.conv]) + "'s input");
  if (norm.sums_output) append_part(forward, "sums its output");
  return {forward, backward_of(graph, norm)};
}

// Layer, forward, backward, why not more; empty for other operations.
TextRow row_of(const Graph& graph, const Op& op, const LayerFusion& layer) {
  return std::visit(
      [&](const auto& how) -> TextRow {
        if constexpr (requires { cells_of(graph, how); }) {
          const Cells cells = cells_of(graph, how);
          return {name_of(op), cells.forward, cells.backward, reasons(layer)};
        } else {
          return {};
        }
      },
      layer.how);
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
    TextRow row = row_of(graph, graph.ops[i], layers[i]);
    if (!row.empty()) rows.push_back(std::move(row));
    if (const auto* conv = std::get_if<FusedConv>(&layers[i].how)) statistics += conv->gathers_statistics;
    const auto* norm = std::get_if<FusedNorm>(&layers[i].how);
    if (!norm) continue;
    unstored += norm->output != FusedNorm::Output::stored;
    backward += is_summed(*norm);
    masked += norm->gradient_comes_masked;
    products += norm->is_by_product();
  }
  return fmt::format(
      "{}of the norms, {} have their statistics from a convolution, {} are never stored, "
      "{} have their backward sums from a convolution, {} have their output's "
      "gradient summed and masked by one, {} end a block without their convolution's output\n{}",
      title, statistics, unstored, backward, masked, products, padded_table(rows, "l", "  "));
}

}  // namespace plumb::cuda
