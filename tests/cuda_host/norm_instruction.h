// A batch norm's instruction over a small tensor, the operands that tests of it share, and PReLU's slopes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/cuda/norm_partition.h"
#include "tests/cuda_host/bound_instruction.h"
#include "tests/cuda_host/norm_reference.h"

namespace plumb::cuda {

inline constexpr DType kHalf = DType::f16;
inline constexpr std::int64_t kImages = 3, kHeight = 5, kWidth = 7, kChannels = 24;
inline constexpr std::size_t kPixels = kImages * kHeight * kWidth;
inline constexpr std::size_t kElements = kPixels * kChannels;

inline BoundInstruction norm_instruction(Activation activation) {
  Graph graph;
  graph.values = {{"in", {kImages, kHeight, kWidth, kChannels}}};
  graph.ops = {BatchNorm{.activation = activation, .epsilon = kNormEpsilon, .momentum = 0.25}};
  return BoundInstruction(std::move(graph));
}

inline Values floats(std::uint64_t seed) {
  return normal_values(DType::f32, kChannels, seed);
}
inline Values halves(std::uint64_t seed) {
  return normal_values(kHalf, kElements, seed);
}
inline Values bits_as_values(const Values& values) {
  const std::vector<std::uint8_t> bits = bits_of_positive(values);
  return {bits.begin(), bits.end()};
}

inline BufferId add_counters(BoundInstruction& instruction) {
  const NormPartition partition = partition_norm(kPixels, kChannels);
  return instruction.add(DType::i32, Values(static_cast<std::size_t>(norm_counters(partition))));
}

// factors[0] * values + factors[1].
inline Values on_line(const Values& values, const Values& factors) {
  Values line(kElements);
  for (std::size_t i = 0; i < kElements; ++i)
    line[i] = factors[i % kChannels] * values[i] + factors[kChannels + i % kChannels];
  return line;
}

// A PReLU's slopes: one per channel, or one for all.
inline constexpr std::size_t kSlopes[] = {kChannels, 1};
inline double slope_at(const Values& slopes, std::size_t i) {
  return slopes[slopes.size() > 1 ? i % kChannels : 0];
}

}  // namespace plumb::cuda
