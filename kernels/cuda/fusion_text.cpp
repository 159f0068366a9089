#include <algorithm>
#include <array>
#include <string>
#include <variant>

#include "kernels/cuda/fusion.h"

namespace plumb::cuda {
namespace {

using Row = std::array<std::string, 4>;  // layer, forward, backward, why not more

std::string joined(const std::string& first, const std::string& second) {
  return first.empty() || second.empty() ? first + second : first + ", " + second;
}

Row row_of(const Graph& graph, const Conv& conv, const LayerFusion& layer) {
  Row row{conv.name, "", "", layer.why_not_more};
  if (layer.forward.adds_residual)
    row[1] = "ends " + name_of(graph.ops[*layer.norm_in_front]) + " (scale, bias, add, ReLU, written out)";
  else if (layer.forward.normalizes_input)
    row[1] = "normalises " + name_of(graph.ops[*layer.norm_in_front]) + " (ConvBNfprop)";
  if (layer.forward.gathers_statistics) row[1] = joined(row[1], "statistics");
  if (layer.weights_normalize_input) row[2] = "ConvBNwgrad";
  if (layer.backward_through_norm) row[2] = joined(row[2], "DgradDreluBNBwdWeight");
  return row;
}

Row row_of(const Graph& graph, const BatchNorm& norm, const LayerFusion& layer) {
  Row row{norm.name, "", "", layer.why_not_more};
  if (layer.statistics_by) row[1] = "statistics by " + name_of(graph.ops[*layer.statistics_by]);
  if (!layer.stored) row[1] = joined(row[1], "never stored");
  if (layer.inside_conv && layer.stored) row[1] = joined(row[1], "no instruction of its own");
  if (layer.norm_in_front) row[1] = joined(row[1], "normalises " + name_of(graph.ops[*layer.norm_in_front]));
  if (layer.backward_by_conv) row[2] = "sums with its output's gradient";
  return row;
}

template <typename OtherOp>
Row row_of(const Graph&, const OtherOp&, const LayerFusion&) {
  return {};
}

std::string to_text(const std::vector<Row>& rows) {
  std::array<std::size_t, 4> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += "  " + row[i] + std::string(widths[i] - row[i].size(), ' ');
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace

std::string fusion_text(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits) {
  const FusionSupport support = support_of(options, limits);
  const std::string title =
      "fusion on " + limits.name + ", " + std::string(name_of(options.precision)) + ": ";
  if (!support.statistics) return title + "none, " + support.why_none + "\n";
  const std::vector<LayerFusion> layers = plan_fusion(graph, options, limits);
  std::vector<Row> rows{{"layer", "forward", "backward", "why not more"}};
  std::size_t statistics = 0, unstored = 0, ends = 0, backward = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Row row = std::visit([&](const auto& op) { return row_of(graph, op, layers[i]); }, graph.ops[i]);
    if (!row.front().empty()) rows.push_back(std::move(row));
    statistics += layers[i].forward.gathers_statistics;
    unstored += !layers[i].stored;
    ends += layers[i].forward.adds_residual;
    backward += layers[i].backward_by_conv;
  }
  return title + "of the norms, " + std::to_string(statistics) +
         " have their statistics from a convolution, " + std::to_string(unstored) + " are never stored, " +
         std::to_string(ends) + " end a block inside the next " + "convolution, " + std::to_string(backward) +
         " have their backward sums from a convolution\n" + to_text(rows);
}

}  // namespace plumb::cuda
