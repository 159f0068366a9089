// Arithmetic of margin losses, class sharding and sampling, for every device and, in double precision, for
// the tests' reference.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/random.h"
#include "models/graph.h"

namespace plumb {

// The target's cosine with margin, and its derivative with respect to the cosine.
template <typename T>
struct MarginTarget {
  T cosine = 0;  // cos(m1 theta + m2) - m3
  T factor = 1;  // m1 sin(m1 theta + m2) / sin(theta); straight-through: 1
};

// theta = acos(c) with |c| clamped to 1 - 1e-7, so that acos and 1 / sin stay finite. With m1 = 1 and m2 = 0
// the angle isn't needed: c - m3, factor 1. exact: Deng et al. 2019, arXiv:1801.07698; straight-through:
// insightface 7fadd420, arcface_torch/losses.py, which ignores the margin's derivative.
template <typename T>
constexpr MarginTarget<T> margin_target(T cosine, T m1, T m2, T m3, bool straight_through) {
  if (m1 == T(1) && m2 == T(0)) return {cosine - m3, T(1)};
  const T limit = T(1) - T(1e-7);
  const T held = cosine > limit ? limit : (cosine < -limit ? -limit : cosine);
  const T angle = m1 * std::acos(held) + m2;
  const T factor = m1 * std::sin(angle) / std::sqrt((T(1) - held) * (T(1) + held));
  return {std::cos(angle) - m3, straight_through ? T(1) : factor};
}

// 1 / |x| for a vector with sum of squares `squares`; the norm is at least 1e-12, as in PyTorch
// (torch.nn.functional.normalize).
template <typename T>
constexpr T inverse_norm(T squares) {
  const T norm = std::sqrt(squares);
  return T(1) / (norm > T(1e-12) ? norm : T(1e-12));
}

struct ClassShard {
  std::int64_t first = 0, count = 0;
};
// classes / world_size each, plus one on the first classes % world_size ranks (insightface 7fadd420,
// arcface_torch/partial_fc_v2.py); no padding classes.
ClassShard class_shard(std::int64_t classes, int rank, int world_size);

// Class-center rows that a step of `op` uses: all own rows, or for a sample max(floor(rate * own), min(all
// images of a batch, own)), so that every batch's positives fit.
std::int64_t margin_rows(const MarginLoss& op, std::int64_t own_classes, std::int64_t batch_per_device);
// floor(rate * own): sample size, unless more of these classes are labels.
std::int64_t sampled_rows(double sample_rate, std::int64_t own_classes);

// Sizes of a margin loss's tensors.
struct MarginSizes {
  std::int64_t images = 0;      // N, of all ranks
  std::int64_t own_images = 0;  // n
  std::int64_t rows = 0;        // C, class centers that a step works with
  std::int64_t embedding = 0;   // E
};
MarginSizes margin_sizes(const Graph& graph, std::size_t op);

// A permutation of [0, count) as a pure function of (key, step): a Feistel network of six rounds over an even
// number of bits, cycle-walked into range (Black and Rogaway 2002, section 4). Sampling takes its first
// values that are no labels, so the cost is that of the sample, not of the classes. Six rounds over at least
// six bits pass chi-square tests of values and pairs even for few classes; four rounds or fewer bits don't.
struct ClassPermutation {
  static constexpr std::uint32_t kRounds = 6, kLeastHalfBits = 3;

  PhiloxBlock round_keys{};                  // the last two rounds reuse the first two, shifted
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
// Key of this rank's samples.
PhiloxKey sample_key(const MarginLoss& op);

// Order of a sample: this rank's labels, unique and ascending; then class_permutation's values in order,
// without those labels, up to max(sampled_rows, labels) rows.

}  // namespace plumb
