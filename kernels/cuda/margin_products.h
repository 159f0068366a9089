// The products of matrices in a margin loss, by the dense layers' engine.
#pragma once

#include <cstdint>

#include "kernels/cuda/binding.h"
#include "models/margin_head.h"

namespace plumb::cuda {

struct MarginSizes {
  std::int64_t images = 0;   // of all ranks in the head's batch
  std::int64_t classes = 0;  // rows of class centres that a step works with
  std::int64_t embedding = 0;
};
inline MarginSizes margin_sizes(const Graph& graph, const MarginLoss& op) {
  const std::vector<std::int64_t>& dims = graph.parameters[op.weight].dims;
  return {.images = op.world_size * graph.batch(),
          .classes = margin_rows(op, dims.at(0), graph.batch()),
          .embedding = dims.at(1)};
}

// margin_products, margin_feature_products and margin_weight_gradient.
bool multiplies(StepKind kind);
// Both factors of a product have the dtype of the centres' rows: where that is a half type, x^ is rounded
// into the workspace first. Raises the bytes of products to those of rows at multiples of 16 bytes.
Finish prepare_margin_products(Context& context, Step& step, const MarginSizes& sizes);

}  // namespace plumb::cuda
