// The arithmetic of margin losses and of how classes are shared out and sampled: used by every device, and in
// double precision by the reference that tests compare with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/random.h"
#include "models/graph.h"

namespace plumb {

// The target's cosine with its margin, and the derivative of that by the cosine.
template <typename T>
struct MarginTarget {
  T cosine = 0;  // cos(m1 theta + m2) - m3
  T factor = 1;  // m1 sin(m1 theta + m2) / sin(theta); straight-through: 1
};

// theta = acos(c) with c held within 1 - 1e-7 of 0, so that neither acos nor 1 / sin is infinite or NaN. With
// m1 = 1 and m2 = 0 the angle isn't needed: c - m3, factor 1.
// exact: Deng et al. 2019, arXiv:1801.07698; straight-through: insightface 7fadd420, arcface_torch/losses.py,
// which takes the margin without its derivative.
template <typename T>
constexpr MarginTarget<T> margin_target(T cosine, T m1, T m2, T m3, bool straight_through) {
  if (m1 == T(1) && m2 == T(0)) return {cosine - m3, T(1)};
  const T limit = T(1) - T(1e-7);
  const T held = cosine > limit ? limit : (cosine < -limit ? -limit : cosine);
  const T angle = m1 * std::acos(held) + m2;
  const T factor = m1 * std::sin(angle) / std::sqrt((T(1) - held) * (T(1) + held));
  return {std::cos(angle) - m3, straight_through ? T(1) : factor};
}

// 1 / |x| of a vector with the sum of squares `squares`, with PyTorch's floor of 1e-12 under the norm
// (torch.nn.functional.normalize).
template <typename T>
constexpr T inverse_norm(T squares) {
  const T norm = std::sqrt(squares);
  return T(1) / (norm > T(1e-12) ? norm : T(1e-12));
}

struct ClassShard {
  std::int64_t first = 0, count = 0;
};
// classes / world_size each, and one more on the first classes % world_size ranks (insightface 7fadd420,
// arcface_torch/partial_fc_v2.py): no class is made up.
ClassShard class_shard(std::int64_t classes, int rank, int world_size);

// Rows of class centres that a step of `op` works with: its own ones, or, of a sample, max(floor(rate * own),
// min(all images of a batch, own)), so that no batch has more positives than there is room for.
std::int64_t margin_rows(const MarginLoss& op, std::int64_t own_classes, std::int64_t batch_per_device);
// floor(rate * own): rows that a sample has, unless more classes than that are labels.
std::int64_t sampled_rows(double sample_rate, std::int64_t own_classes);

// A permutation of [0, count) as a pure function of (key, step): a Feistel network of six rounds over an even
// number of bits, walked until it is back inside (Black and Rogaway 2002, section 4). Sampling takes its
// first values that are no label: the cost is that of the sample, not of the classes. Six rounds over at
// least six bits pass chi-square tests of values and of pairs for few classes too, where four rounds or fewer
// bits don't.
struct ClassPermutation {
  static constexpr std::uint32_t kRounds = 6, kLeastHalfBits = 3;

  PhiloxBlock round_keys{};                  // the last two rounds have the first two again, moved
  std::uint32_t half_bits = kLeastHalfBits;  // count <= 4^half_bits
  std::uint32_t count = 1;

  constexpr std::uint32_t operator()(std::uint32_t i) const {
    const std::uint32_t mask = (std::uint32_t{1} << half_bits) - 1;
    do {
      std::uint32_t left = i >> half_bits, right = i & mask;
      for (std::uint32_t round = 0; round < kRounds; ++round) {
        const std::uint32_t key = round_keys[round % 4] + 0x9E3779B9u * (round / 4);
        std::uint32_t mixed = (right ^ key) * 0x9E3779B1u;
        mixed = (mixed ^ (mixed >> 15)) * 0x85EBCA77u;
        mixed ^= mixed >> 13;
        const std::uint32_t swapped = right;
        right = left ^ (mixed & mask);
        left = swapped;
      }
      i = (left << half_bits) | right;
    } while (i >= count);
    return i;
  }
};
// round_keys: random_block(key, step). key: stream_key(seed, name of the op + rank). count: 1 and up.
constexpr ClassPermutation class_permutation(PhiloxKey key, std::uint64_t step, std::uint32_t count) {
  ClassPermutation permutation{.round_keys = random_block(key, step), .count = count};
  while ((std::uint64_t{1} << (2 * permutation.half_bits)) < count) ++permutation.half_bits;
  return permutation;
}
// The key of this rank's samples.
PhiloxKey sample_key(const MarginLoss& op);

// The order of a sample: the labels that this rank has, each once, ascending; then class_permutation's values
// in their order, without those labels, until max(sampled_rows, labels) rows are there.

}  // namespace plumb
