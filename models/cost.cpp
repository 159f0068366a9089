#include "models/cost.h"

#include <string_view>

#include "base/text.h"
#include "models/margin_head.h"

namespace plumb {
namespace {

constexpr std::string_view kWeightSuffix = ".weight";

std::string joined(const std::vector<std::int64_t>& dims) {
  return fmt::format("{}", fmt::join(dims, "x"));
}

std::string image_shape(const Shape& shape) {
  return joined({shape.c, shape.h, shape.w});
}

std::int64_t macs_of(const Graph& graph, const Conv& conv) {
  const Shape& out = graph.values[conv.out].shape;
  return graph.parameters[conv.weight].elements() * out.h * out.w;
}

std::int64_t macs_of(const Graph& graph, const Dense& dense) {
  return graph.parameters[dense.weight].elements();
}

template <typename OtherOp>
std::int64_t macs_of(const Graph&, const OtherOp&) {
  return 0;
}

void add_rows(const Graph& graph, const Conv& conv, std::vector<LayerCost>& rows) {
  const Parameter& weight = graph.parameters[conv.weight];
  rows.push_back({.name = conv.name,
                  .kind = "conv",
                  .weight_shape = fmt::format("{}/s{}/p{}/g{}", joined(weight.dims), conv.stride,
                                              conv.padding, conv.groups),
                  .out_shape = image_shape(graph.values[conv.out].shape),
                  .parameters = weight.elements(),
                  .macs = macs_of(graph, conv)});
}

void add_rows(const Graph& graph, const Norm& norm, std::vector<LayerCost>& rows) {
  const Parameter& scale = graph.parameters[norm.scale];
  const std::string out_shape = image_shape(graph.values[norm.out].shape);
  rows.push_back({.name = norm.name,
                  .kind = "bn",
                  .weight_shape = joined(scale.dims),
                  .out_shape = out_shape,
                  .parameters = scale.elements() + graph.parameters[norm.bias].elements()});
  if (!norm.slope) return;
  const Parameter& slope = graph.parameters[*norm.slope];
  rows.push_back({.name = slope.name.substr(0, slope.name.size() - kWeightSuffix.size()),
                  .kind = "prelu",
                  .weight_shape = joined(slope.dims),
                  .out_shape = out_shape,
                  .parameters = slope.elements()});
}

void add_rows(const Graph& graph, const Dense& dense, std::vector<LayerCost>& rows) {
  const Parameter& weight = graph.parameters[dense.weight];
  rows.push_back({.name = dense.name,
                  .kind = "fc",
                  .weight_shape = joined(weight.dims),
                  .out_shape = std::to_string(graph.values[dense.out].shape.c),
                  .parameters = weight.elements() + graph.parameters[dense.bias].elements(),
                  .macs = macs_of(graph, dense)});
}

template <typename OtherOp>
void add_rows(const Graph&, const OtherOp&, std::vector<LayerCost>&) {}

const MarginLoss* margin_loss(const Graph& graph) {
  return graph.ops.empty() ? nullptr : std::get_if<MarginLoss>(&graph.ops.back());
}

std::int64_t embedding(const Graph& graph, const MarginLoss& loss) {
  return graph.parameters[loss.weight].dims.back();
}

}  // namespace

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t count = 0;
  for (const Parameter& parameter : graph.parameters) count += parameter.elements();
  return count;
}

std::int64_t backbone_parameter_count(const Graph& graph) {
  const MarginLoss* loss = margin_loss(graph);
  return parameter_count(graph) - (loss ? graph.parameters[loss->weight].elements() : 0);
}

std::int64_t head_parameter_count(const Graph& graph) {
  const MarginLoss* loss = margin_loss(graph);
  return loss ? loss->classes * embedding(graph, *loss) : 0;
}

std::int64_t macs_per_image(const Graph& graph, const Op& op) {
  return std::visit([&](const auto& one) { return macs_of(graph, one); }, op);
}

std::int64_t macs_per_image(const Graph& graph) {
  std::int64_t macs = 0;
  for (const Op& op : graph.ops) macs += macs_per_image(graph, op);
  return macs;
}

std::int64_t head_macs_per_image(const Graph& graph) {
  const MarginLoss* loss = margin_loss(graph);
  if (!loss) return 0;
  // The first ranks hold one class more.
  const std::int64_t each = loss->classes / loss->world_size, larger = loss->classes % loss->world_size;
  const std::int64_t rows = larger * margin_rows(*loss, each + 1, graph.batch()) +
                            (loss->world_size - larger) * margin_rows(*loss, each, graph.batch());
  return rows * embedding(graph, *loss);
}

std::vector<LayerCost> layer_costs(const Graph& graph) {
  std::vector<LayerCost> rows;
  for (const Op& op : graph.ops) std::visit([&](const auto& one) { add_rows(graph, one, rows); }, op);
  return rows;
}

}  // namespace plumb
