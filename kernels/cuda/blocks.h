// Grid sizes of launches. Plain C++.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace plumb::cuda {

// Grid limits: first dimension; second and third (CUDA C++ Programming Guide, "Technical Specifications per
// Compute Capability"). CUDA itself refuses a launch that exceeds the second or third. In the first, a count
// of more than 32 bits would be truncated and elements would be skipped.
inline constexpr std::int64_t kMostBlocks = (std::int64_t{1} << 31) - 1;
inline constexpr std::int64_t kMostBlocksBeside = 65535;

// Threads of a block where nothing speaks for another number.
inline constexpr int kThreads = 256;

constexpr std::int64_t divide_up(std::int64_t count, std::int64_t by) {
  return (count + by - 1) / by;
}

// Blocks in the grid's first dimension for `count` elements, `per_block` each. Throws std::logic_error above
// the limit of every GPU.
inline unsigned blocks_for(std::int64_t count, std::int64_t per_block) {
  const std::int64_t blocks = divide_up(count, per_block);
  if (blocks < 1 || blocks > kMostBlocks)
    throw std::logic_error("a launch for " + std::to_string(count) + " elements, " +
                           std::to_string(per_block) + " in a block, has " + std::to_string(blocks) +
                           " blocks; a GPU takes 1 to " + std::to_string(kMostBlocks));
  return static_cast<unsigned>(blocks);
}

}  // namespace plumb::cuda
