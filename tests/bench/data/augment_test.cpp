#include "bench/data/augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace plumb {
namespace {

constexpr PhiloxKey kKey = {11, 12};

TEST(RandomCrop, StaysInsideTheImageAndItsRatios) {
  for (const ImageSize image : {ImageSize{500, 375}, {224, 224}, {40, 300}, {3, 5}, {1, 1}}) {
    for (std::uint64_t sample = 0; sample < 2000; ++sample) {
      const Crop crop = random_crop(image, kKey, sample);
      ASSERT_GE(crop.left, 0);
      ASSERT_GE(crop.top, 0);
      ASSERT_GE(crop.size.width, 1);
      ASSERT_GE(crop.size.height, 1);
      ASSERT_LE(crop.left + crop.size.width, image.width);
      ASSERT_LE(crop.top + crop.size.height, image.height);
    }
  }
}

TEST(RandomCrop, CoversAreasRatiosPlacesAndFlips) {
  const ImageSize image{640, 480};
  double smallest = 1, largest = 0, narrowest = 10, widest = 0, area_sum = 0;
  int flips = 0, at_left = 0, at_right = 0;
  constexpr int kSamples = 20000;
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    const Crop crop = random_crop(image, kKey, sample);
    const double area = static_cast<double>(crop.size.width) * crop.size.height / (640.0 * 480);
    const double ratio = static_cast<double>(crop.size.width) / crop.size.height;
    smallest = std::min(smallest, area), largest = std::max(largest, area);
    narrowest = std::min(narrowest, ratio), widest = std::max(widest, ratio);
    area_sum += area;
    flips += crop.flip;
    at_left += crop.left == 0;
    at_right += crop.left + crop.size.width == image.width;
  }
  EXPECT_NEAR(smallest, 0.08, 0.005);
  EXPECT_GT(largest, 0.97);
  EXPECT_NEAR(narrowest, 0.75, 0.01);
  EXPECT_NEAR(widest, 4.0 / 3, 0.02);
  EXPECT_NEAR(area_sum / kSamples, 0.4346, 0.006);  // torchvision 0.29 gives 0.4346
  EXPECT_NEAR(flips, kSamples / 2, 300);
  EXPECT_GT(at_left, 50);
  EXPECT_GT(at_right, 50);
}

TEST(RandomCrop, AnImageThatNoTryFitsGivesItsMiddle) {
  const Crop wide = random_crop({4000, 10}, kKey, 5);
  EXPECT_EQ(wide.size, (ImageSize{13, 10}));
  EXPECT_EQ(wide.left, (4000 - 13) / 2);
  EXPECT_EQ(wide.top, 0);
  const Crop tall = random_crop({9, 4000}, kKey, 5);
  EXPECT_EQ(tall.size, (ImageSize{9, 12}));
  EXPECT_EQ(tall.top, (4000 - 12) / 2);
}

TEST(RandomCrop, DependsOnKeyAndSampleAlone) {
  std::set<std::array<int, 4>> seen;
  for (std::uint64_t sample = 0; sample < 100; ++sample) {
    const Crop crop = random_crop({640, 480}, kKey, sample), again = random_crop({640, 480}, kKey, sample);
    EXPECT_EQ(crop.left, again.left);
    EXPECT_EQ(crop.size, again.size);
    seen.insert({crop.left, crop.top, crop.size.width, crop.size.height});
  }
  EXPECT_EQ(seen.size(), 100U);
  EXPECT_NE(random_crop({640, 480}, kKey, 0).size, random_crop({640, 480}, {11, 13}, 0).size);
}

TEST(Normalization, IsTheOneOfImagesAndOfFaces) {
  const Normalization images = normalisation_of(Preprocessing::imagenet);
  const double mean[] = {0.485, 0.456, 0.406}, deviation[] = {0.229, 0.224, 0.225};
  for (std::size_t c = 0; c < 3; ++c)
    for (const int level : {0, 100, 255})
      EXPECT_NEAR(static_cast<float>(level) * images.factor[c] + images.offset[c],
                  (level / 255.0 - mean[c]) / deviation[c], 1e-6);
  const Normalization faces = normalisation_of(Preprocessing::insightface);
  for (std::size_t c = 0; c < 3; ++c)
    EXPECT_EQ(100 * faces.factor[c] + faces.offset[c], (100 - 127.5F) * 0.0078125F);
}

TEST(WholeImage, IsFlippedHalfOfTheTimesByKeyAndSampleAlone) {
  int flips = 0;
  for (std::uint64_t sample = 0; sample < 4000; ++sample) {
    const Crop crop = crop_for(Preprocessing::insightface, {112, 113}, kKey, sample);
    ASSERT_EQ(crop.size, (ImageSize{112, 113}));
    ASSERT_EQ(crop.left + crop.top, 0);
    ASSERT_EQ(crop.flip, crop_for(Preprocessing::insightface, {112, 113}, kKey, sample).flip);
    flips += crop.flip;
  }
  EXPECT_NEAR(flips, 2000, 130);
}

}  // namespace
}  // namespace plumb
