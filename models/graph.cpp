#include "models/graph.h"

#include "models/margin_head.h"

namespace plumb {
namespace {

std::int64_t embedding(const Graph& graph, const MarginLoss& loss) {
  return graph.parameters[loss.weight].dims.back();
}

}  // namespace

std::int64_t backbone_parameter_count(const Graph& graph) {
  const MarginLoss* loss = graph.margin_loss();
  std::int64_t count = 0;
  for (ParameterId p = 0; p < graph.parameters.size(); ++p)
    if (!loss || p != loss->weight) count += graph.parameters[p].elements();
  return count;
}

std::int64_t head_parameter_count(const Graph& graph) {
  const MarginLoss* loss = graph.margin_loss();
  return loss ? loss->classes * embedding(graph, *loss) : 0;
}

std::int64_t macs_per_image(const Graph& graph, const Op& op) {
  if (const auto* conv = std::get_if<Conv>(&op)) {
    const Shape& out = graph.values[conv->out].shape;
    return graph.parameters[conv->weight].elements() * out.h * out.w;
  }
  const auto* dense = std::get_if<Dense>(&op);
  return dense ? graph.parameters[dense->weight].elements() : 0;
}

std::int64_t macs_per_image(const Graph& graph) {
  std::int64_t macs = 0;
  for (const Op& op : graph.ops) macs += macs_per_image(graph, op);
  return macs;
}

std::int64_t head_macs_per_image(const Graph& graph) {
  const MarginLoss* loss = graph.margin_loss();
  if (!loss) return 0;
  // The first ranks hold one class more.
  const std::int64_t each = loss->classes / loss->world_size, larger = loss->classes % loss->world_size;
  const std::int64_t rows = larger * margin_rows(*loss, each + 1, graph.batch()) +
                            (loss->world_size - larger) * margin_rows(*loss, each, graph.batch());
  return rows * embedding(graph, *loss);
}

}  // namespace plumb
