// How many thread blocks a launch has. Plain C++.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace plumb::cuda {

// In a grid's first dimension, and in its second and third (CUDA C++ Programming Guide, "Technical
// Specifications per Compute Capability"). A launch with too many in the others is refused by CUDA itself;
// in the first one a count of more than 32 bits would lose its upper ones, and elements would be left out.
inline constexpr std::int64_t kMostBlocks = (std::int64_t{1} << 31) - 1;
inline constexpr std::int64_t kMostBlocksBeside = 65535;

constexpr std::int64_t divide_up(std::int64_t count, std::int64_t by) {
  return (count + by - 1) / by;
}

// Blocks for `count` elements, `per_block` in each, in a grid's first dimension. Throws std::logic_error if
// no GPU takes so many.
inline unsigned blocks_for(std::int64_t count, std::int64_t per_block) {
  const std::int64_t blocks = divide_up(count, per_block);
  if (blocks < 1 || blocks > kMostBlocks)
    throw std::logic_error("a launch for " + std::to_string(count) + " elements, " +
                           std::to_string(per_block) + " in a block, has " + std::to_string(blocks) +
                           " blocks; a GPU takes 1 to " + std::to_string(kMostBlocks));
  return static_cast<unsigned>(blocks);
}

}  // namespace plumb::cuda
