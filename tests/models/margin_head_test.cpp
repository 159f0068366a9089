#include "models/margin_head.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

namespace plumb {
namespace {

constexpr Margins kMargins[] = {{1, 0.5, 0}, {1, 0, 0.4}, {1, 0.3, 0.2}, {1.35, 0, 0}, {0.9, 0.4, 0.15}};

double target_cosine(double cosine, const Margins& margins) {
  return std::cos(margins.m1 * std::acos(cosine) + margins.m2) - margins.m3;
}

template <typename T>
MarginTarget<T> target(T cosine, const Margins& margins, bool straight_through = false) {
  return margin_target<T>(cosine, static_cast<T>(margins.m1), static_cast<T>(margins.m2),
                          static_cast<T>(margins.m3), straight_through);
}

TEST(MarginTarget, IsTheCosineOfTheWidenedAngleAndItsDerivative) {
  constexpr double kStep = 1e-6;
  for (const Margins& margins : kMargins) {
    for (double cosine = -0.99; cosine < 0.995; cosine += 0.01) {
      const MarginTarget<double> found = target(cosine, margins);
      EXPECT_NEAR(found.cosine, target_cosine(cosine, margins), 1e-12);
      const double slope =
          (target_cosine(cosine + kStep, margins) - target_cosine(cosine - kStep, margins)) / (2 * kStep);
      EXPECT_NEAR(found.factor, slope, 1e-7 * std::max(1.0, std::abs(slope)));
    }
  }
}

TEST(MarginTarget, StraightThroughHasTheSameCosineAndFactorOne) {
  for (const Margins& margins : kMargins) {
    for (const double cosine : {-0.9, -0.1, 0.0, 0.4, 0.99}) {
      EXPECT_EQ(target(cosine, margins, true).cosine, target(cosine, margins).cosine);
      EXPECT_EQ(target(cosine, margins, true).factor, 1);
    }
  }
}

template <typename T>
void expect_finite_at_the_ends() {
  for (const Margins& margins : kMargins) {
    for (const T cosine : {T(1), T(-1), T(1) + T(1e-6), T(-1) - T(1e-6)}) {
      const MarginTarget<T> found = target(cosine, margins);
      EXPECT_TRUE(std::isfinite(found.cosine));
      EXPECT_TRUE(std::isfinite(found.factor));
      const double held = std::clamp(static_cast<double>(cosine), -1.0, 1.0);
      EXPECT_NEAR(found.cosine, target_cosine(held, margins), 1e-3);
    }
  }
}

TEST(MarginTarget, IsFiniteWhereTheCosineIsOneOrRoundedBeyondIt) {
  expect_finite_at_the_ends<float>();
  expect_finite_at_the_ends<double>();
}

TEST(MarginTarget, InSinglePrecisionStaysCloseToDouble) {
  for (const Margins& margins : kMargins) {
    for (double cosine = -0.95; cosine < 0.96; cosine += 0.05) {
      const MarginTarget<double> wanted = target(cosine, margins);
      const MarginTarget<float> found = target(static_cast<float>(cosine), margins);
      EXPECT_NEAR(found.cosine, wanted.cosine, 2e-6);
      EXPECT_NEAR(found.factor, wanted.factor, 1e-5 * std::max(1.0, std::abs(wanted.factor)));
    }
  }
}

TEST(InverseNorm, HasPyTorchsFloor) {
  EXPECT_DOUBLE_EQ(inverse_norm(25.0), 0.2);
  EXPECT_DOUBLE_EQ(inverse_norm(0.0), 1e12);
  EXPECT_FLOAT_EQ(inverse_norm(0.0F), 1e12F);
}

TEST(ClassShard, CoversEveryClassOnceInRankOrderAndEvenly) {
  for (const std::int64_t classes : {1, 7, 10, 85742, 360232}) {
    for (const int ranks : {1, 2, 3, 4, 7, 16, 1024}) {
      std::int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const ClassShard shard = class_shard(classes, rank, ranks);
        EXPECT_EQ(shard.first, next);
        EXPECT_GE(shard.count, classes / ranks);
        EXPECT_LE(shard.count, (classes + ranks - 1) / ranks);
        next += shard.count;
      }
      EXPECT_EQ(next, classes);
    }
  }
  EXPECT_EQ(class_shard(85742, 1, 4).first, 21436);
  EXPECT_EQ(class_shard(85742, 3, 4).count, 21435);
}

TEST(MarginRows, AreAllOwnOnesUnlessSampled) {
  MarginLoss op;
  op.head = Head::sharded;
  op.sample_rate = 0.1;
  op.world_size = 4;
  EXPECT_EQ(margin_rows(op, 1000, 8), 1000);
  op.head = Head::sampled;
  EXPECT_EQ(margin_rows(op, 1000, 8), 100);   // the sample fits 32 labels
  EXPECT_EQ(margin_rows(op, 1000, 64), 256);  // all images' labels may belong to one rank
  EXPECT_EQ(margin_rows(op, 1000, 4096), 1000);
  EXPECT_EQ(margin_rows(op, 1009, 8), 100);
  op.sample_rate = 1;
  EXPECT_EQ(margin_rows(op, 1000, 8), 1000);
  op.sample_rate = 1e-9;
  EXPECT_EQ(margin_rows(op, 1000, 8), 32);
}

PhiloxKey key_of(std::uint64_t seed, int rank = 0) {
  MarginLoss op;
  op.name = "head";
  op.seed = seed;
  op.rank = rank;
  return sample_key(op);
}

TEST(ClassPermutation, HasEachClassOnce) {
  for (std::uint32_t count = 1; count <= 2000; ++count) {
    const ClassPermutation permutation = class_permutation(key_of(7), count, count);
    std::vector<bool> seen(count, false);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t value = permutation(i);
      ASSERT_LT(value, count);
      ASSERT_FALSE(seen[value]) << value << " of " << count << " twice";
      seen[value] = true;
    }
  }
}

TEST(ClassPermutation, OfManyClassesHasNoneTwiceInASample) {
  for (const std::uint32_t count : {85742U, 1U << 20, (1U << 20) + 1, 100000000U, 0x7FFFFFFFU}) {
    const ClassPermutation permutation = class_permutation(key_of(7), 3, count);
    std::unordered_set<std::uint32_t> seen;
    for (std::uint32_t i = 0; i < 50000; ++i) {
      const std::uint32_t value = permutation(i);
      ASSERT_LT(value, count);
      ASSERT_TRUE(seen.insert(value).second) << value << " of " << count << " twice";
    }
  }
}

// (chi-square - degrees of freedom) / its standard deviation: within 5 for uniform counts.
double excess(const std::vector<double>& counts, double expected) {
  double chi_square = 0;
  for (const double count : counts) chi_square += (count - expected) * (count - expected) / expected;
  const auto freedom = static_cast<double>(counts.size() - 1);
  return (chi_square - freedom) / std::sqrt(2 * freedom);
}

TEST(ClassPermutation, EveryPairOfClassesComesFirstEquallyOften) {
  constexpr int kSteps = 40000;
  for (const std::uint32_t count : {3U, 5U, 8U, 17U, 33U, 64U, 100U}) {
    std::vector<double> pairs(std::size_t{count} * (count - 1), 0);
    for (int step = 0; step < kSteps; ++step) {
      const ClassPermutation permutation =
          class_permutation(key_of(1), static_cast<std::uint64_t>(step), count);
      const std::uint32_t first = permutation(0), second = permutation(1);
      ++pairs[first * (count - 1) + (second < first ? second : second - 1)];
    }
    EXPECT_LT(excess(pairs, kSteps / static_cast<double>(pairs.size())), 5) << count;
  }
}

TEST(ClassPermutation, ASampleTakesEveryClassEquallyOften) {
  constexpr int kSteps = 4000;
  for (const std::uint32_t count : {64U, 257U, 1000U, 4099U}) {
    std::vector<double> taken(count, 0);
    for (int step = 0; step < kSteps; ++step) {
      const ClassPermutation permutation =
          class_permutation(key_of(2), static_cast<std::uint64_t>(step), count);
      for (std::uint32_t i = 0; i < count / 10; ++i) ++taken[permutation(i)];
    }
    EXPECT_LT(std::abs(excess(taken, kSteps * (count / 10) / static_cast<double>(count))), 5) << count;
  }
}

TEST(ClassPermutation, OfManyClassesSpreadsASampleEvenly) {
  constexpr std::uint32_t kClasses = 1000000, kBins = 500, kSample = 100000;
  const ClassPermutation permutation = class_permutation(key_of(3), 11, kClasses);
  std::vector<double> bins(kBins, 0);
  for (std::uint32_t i = 0; i < kSample; ++i) ++bins[permutation(i) / (kClasses / kBins)];
  EXPECT_LT(std::abs(excess(bins, double{kSample} / kBins)), 5);
}

TEST(ClassPermutation, DependsOnSeedRankAndStepAlone) {
  const auto head_of = [](PhiloxKey key, std::uint64_t step) {
    std::vector<std::uint32_t> values;
    for (std::uint32_t i = 0; i < 8; ++i) values.push_back(class_permutation(key, step, 85742)(i));
    return values;
  };
  EXPECT_EQ(head_of(key_of(1), 5), head_of(key_of(1), 5));
  EXPECT_NE(head_of(key_of(1), 5), head_of(key_of(1), 6));
  EXPECT_NE(head_of(key_of(1), 5), head_of(key_of(2), 5));
  EXPECT_NE(head_of(key_of(1, 0), 5), head_of(key_of(1, 1), 5));
}

TEST(ClassPermutation, WorksOnADomainAtMostFourTimesTheClasses) {
  for (const std::uint32_t count : {17U, 64U, 65U, 85742U, 1000000U, 0x7FFFFFFFU}) {
    const ClassPermutation permutation = class_permutation(key_of(1), 0, count);
    const std::uint64_t domain = std::uint64_t{1} << (2 * permutation.half_bits);
    EXPECT_GE(domain, count);
    EXPECT_LE(domain, std::uint64_t{4} * count);
  }
}

}  // namespace
}  // namespace plumb
