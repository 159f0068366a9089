// The sizes of the tensors of a margin loss.
#pragma once

#include <cstddef>

#include "kernels/cpu/binding.h"
#include "models/margin_head.h"

namespace plumb::cpu {

struct MarginSizes {
  std::ptrdiff_t images = 0;      // N, all ranks
  std::ptrdiff_t own_images = 0;  // n
  std::ptrdiff_t rows = 0;        // C
  std::ptrdiff_t embedding = 0;   // E
};

inline MarginSizes margin_sizes(const Context& context, const Instruction& instruction) {
  const MarginLoss& op = context.op<MarginLoss>(instruction);
  const std::vector<std::int64_t>& centres = context.graph.parameters[op.weight].dims;
  const std::int64_t batch = context.graph.batch();
  return {.images = batch * op.world_size,
          .own_images = batch,
          .rows = margin_rows(op, centres[0], batch),
          .embedding = centres[1]};
}

}  // namespace plumb::cpu
