#include "models/dropout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace plumb {
namespace {

// The elements of image `sample` kept in step `step`.
std::vector<bool> kept(const DropoutRule& rule, std::uint64_t step, std::uint64_t sample,
                       std::uint32_t elements) {
  std::vector<bool> mask;
  for (std::uint32_t element = 0; element < elements; ++element) {
    mask.push_back(dropout_bits(rule.key, step, sample, element / 4)[element % 4] >= rule.threshold);
  }
  return mask;
}

double share(const std::vector<bool>& mask) {
  return static_cast<double>(std::count(mask.begin(), mask.end(), true)) / static_cast<double>(mask.size());
}

TEST(Dropout, KeepsItsShareAndScalesItToTheSameMean) {
  constexpr std::uint32_t kElements = 200000;
  for (const double probability : {0.1, 0.4, 0.5, 0.9}) {
    const DropoutRule rule = dropout_rule(1, "dropout", probability);
    const double kept_share = share(kept(rule, 3, 5, kElements));
    const double deviation = std::sqrt(probability * (1 - probability) / kElements);
    EXPECT_NEAR(kept_share, 1 - probability, 5 * deviation);
    EXPECT_NEAR(kept_share * rule.keep_scale, 1, 5 * deviation / (1 - probability));
  }
}

TEST(Dropout, KeepsEverythingAtZeroAndNextToNothingJustBelowOne) {
  EXPECT_EQ(share(kept(dropout_rule(1, "dropout", 0), 0, 0, 10000)), 1);
  EXPECT_EQ(dropout_rule(1, "dropout", 0).keep_scale, 1);
  const DropoutRule almost_all = dropout_rule(1, "dropout", 1 - 1e-12);
  EXPECT_EQ(share(kept(almost_all, 0, 0, 10000)), 0);
  EXPECT_TRUE(std::isfinite(almost_all.keep_scale));
}

// Independent masks agree in half of their elements.
void expect_unrelated(const std::vector<bool>& a, const std::vector<bool>& b) {
  int same = 0;
  for (std::size_t i = 0; i < a.size(); ++i) same += a[i] == b[i] ? 1 : 0;
  EXPECT_NEAR(same / static_cast<double>(a.size()), 0.5, 5 * 0.5 / std::sqrt(static_cast<double>(a.size())));
}

TEST(Dropout, StepsImagesLayersAndSeedsHaveMasksOfTheirOwn) {
  constexpr std::uint32_t kElements = 20000;
  const DropoutRule rule = dropout_rule(1, "dropout", 0.5);
  const std::vector<bool> mask = kept(rule, 10, 20, kElements);
  EXPECT_EQ(mask, kept(rule, 10, 20, kElements));
  expect_unrelated(mask, kept(rule, 11, 20, kElements));
  expect_unrelated(mask, kept(rule, 10, 21, kElements));
  expect_unrelated(mask, kept(rule, 20, 10, kElements));
  expect_unrelated(mask, kept(rule, 10, 20 + (std::uint64_t{1} << 32), kElements));
  expect_unrelated(mask, kept(dropout_rule(2, "dropout", 0.5), 10, 20, kElements));
  expect_unrelated(mask, kept(dropout_rule(1, "other", 0.5), 10, 20, kElements));
}

TEST(Dropout, NeighborsAreUnrelated) {
  constexpr std::uint32_t kElements = 20000;
  const std::vector<bool> mask = kept(dropout_rule(1, "dropout", 0.5), 0, 0, kElements + 5);
  for (const int distance : {1, 2, 3, 4, 5}) {
    expect_unrelated({mask.begin(), mask.begin() + kElements},
                     {mask.begin() + distance, mask.begin() + distance + kElements});
  }
}

// Global samples are first_sample + image, so any split into ranks and batches works.
TEST(Dropout, MasksOfABatchDoNotDependOnHowRanksShareItOut) {
  const DropoutRule rule = dropout_rule(1, "dropout", 0.4);
  const auto masks = [&](std::uint64_t ranks, std::uint64_t batch) {
    std::vector<std::vector<bool>> all;
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      for (std::uint64_t image = 0; image < batch; ++image) {
        all.push_back(kept(rule, 7, rank * batch + image, 100));
      }
    }
    return all;
  };
  EXPECT_EQ(masks(1, 12), masks(4, 3));
  EXPECT_EQ(masks(1, 12), masks(3, 4));
}

}  // namespace
}  // namespace plumb
