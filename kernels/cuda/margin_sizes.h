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
inline MarginSizes margin_sizes(const Graph& graph, const Instruction& instruction) {
  const auto& op = std::get<MarginLoss>(graph.ops[instruction.op]);
  const std::vector<std::int64_t>& dims = graph.parameters[op.weight].dims;
  return {.images = op.world_size * graph.batch(),
          .classes = margin_rows(op, dims.at(0), graph.batch()),
          .embedding = dims.at(1)};
}

}  // namespace plumb::cuda
