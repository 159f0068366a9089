#include "models/cost.h"

#include <optional>

namespace plumb {
namespace {

std::string joined(const std::vector<std::int64_t>& dims) {
  std::string text;
  for (std::int64_t dim : dims) {
    if (!text.empty()) text += 'x';
    text += std::to_string(dim);
  }
  return text;
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

std::optional<LayerCost> cost_of(const Graph& graph, const Conv& conv) {
  const Parameter& weight = graph.parameters[conv.weight];
  const std::string shape = joined(weight.dims) + "/s" + std::to_string(conv.stride) + "/p" +
                            std::to_string(conv.padding) + "/g" + std::to_string(conv.groups);
  return LayerCost{
      conv.name,           "conv", shape, image_shape(graph.values[conv.out].shape), weight.elements(),
      macs_of(graph, conv)};
}

std::optional<LayerCost> cost_of(const Graph& graph, const Norm& norm) {
  const Parameter& scale = graph.parameters[norm.scale];
  return LayerCost{norm.name,
                   "bn",
                   joined(scale.dims),
                   image_shape(graph.values[norm.out].shape),
                   scale.elements() + graph.parameters[norm.bias].elements(),
                   0};
}

std::optional<LayerCost> cost_of(const Graph& graph, const Dense& dense) {
  const Parameter& weight = graph.parameters[dense.weight];
  return LayerCost{dense.name,
                   "fc",
                   joined(weight.dims),
                   std::to_string(graph.values[dense.out].shape.c),
                   weight.elements() + graph.parameters[dense.bias].elements(),
                   macs_of(graph, dense)};
}

template <typename OtherOp>
std::optional<LayerCost> cost_of(const Graph&, const OtherOp&) {
  return std::nullopt;
}

}  // namespace

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t count = 0;
  for (const Parameter& parameter : graph.parameters) count += parameter.elements();
  return count;
}

std::int64_t macs_per_image(const Graph& graph, const Op& op) {
  return std::visit([&](const auto& one) { return macs_of(graph, one); }, op);
}

std::int64_t macs_per_image(const Graph& graph) {
  std::int64_t macs = 0;
  for (const Op& op : graph.ops) macs += macs_per_image(graph, op);
  return macs;
}

std::vector<LayerCost> layer_costs(const Graph& graph) {
  std::vector<LayerCost> costs;
  for (const Op& op : graph.ops) {
    if (auto cost = std::visit([&](const auto& one) { return cost_of(graph, one); }, op))
      costs.push_back(*cost);
  }
  return costs;
}

}  // namespace plumb
