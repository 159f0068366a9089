#include "models/margin_head.h"

#include "base/text.h"

namespace plumb {

ClassShard class_shard(std::int64_t classes, int rank, int world_size) {
  const std::int64_t each = classes / world_size, rest = classes % world_size;
  return {.first = rank * each + std::min<std::int64_t>(rank, rest), .count = each + (rank < rest ? 1 : 0)};
}

std::int64_t sampled_rows(double sample_rate, std::int64_t own_classes) {
  return static_cast<std::int64_t>(std::floor(sample_rate * static_cast<double>(own_classes)));
}

std::int64_t margin_rows(const MarginLoss& op, std::int64_t own_classes, std::int64_t batch_per_device) {
  if (op.head != Head::sampled) return own_classes;
  return std::max(sampled_rows(op.sample_rate, own_classes),
                  std::min(op.world_size * batch_per_device, own_classes));
}

MarginSizes margin_sizes(const Graph& graph, std::size_t op) {
  const auto& loss = std::get<MarginLoss>(graph.ops[op]);
  const std::vector<std::int64_t>& centers = graph.parameters[loss.weight].dims;
  const std::int64_t batch = graph.batch();
  return {.images = batch * loss.world_size,
          .own_images = batch,
          .rows = margin_rows(loss, centers[0], batch),
          .embedding = centers[1]};
}

PhiloxKey sample_key(const MarginLoss& op) {
  return stream_key(op.seed, fmt::format("{}.sample.{}", op.name, op.rank));
}

}  // namespace plumb
