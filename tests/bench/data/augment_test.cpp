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

TEST(ScaledBox, FollowsTheDecodedSize) {
  const Box box = scaled({80, 40, {160, 80}, false}, {801, 401}, {101, 51});
  EXPECT_DOUBLE_EQ(box.left, 80 * 101.0 / 801);
  EXPECT_DOUBLE_EQ(box.top, 40 * 51.0 / 401);
  EXPECT_DOUBLE_EQ(box.width, 160 * 101.0 / 801);
  EXPECT_DOUBLE_EQ(box.height, 80 * 51.0 / 401);
}

std::vector<std::uint8_t> random_pixels(ImageSize size) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.width) *
                                   static_cast<std::size_t>(size.height) * 4);
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<std::uint8_t>(random_block({5, 6}, i)[0]);
  return pixels;
}

// One output value by definition: all pixels of the box, weighted by the product of two triangles.
double reference(const RgbxImage& image, const Box& box, int out_size, int x, int y, std::size_t channel) {
  const std::array<double, 3> mean = {0.485, 0.456, 0.406}, deviation = {0.229, 0.224, 0.225};
  const double step_x = box.width / out_size, step_y = box.height / out_size;
  const auto triangle = [](double distance, double step) {
    return std::max(0.0, 1 - std::abs(distance) / std::max(1.0, step));
  };
  double sum = 0, weights = 0;
  for (int v = static_cast<int>(std::floor(box.top));
       v < std::min<double>(image.size.height, box.top + box.height); ++v)
    for (int u = static_cast<int>(std::floor(box.left));
         u < std::min<double>(image.size.width, box.left + box.width); ++u) {
      const double weight = triangle(u + 0.5 - box.left - (x + 0.5) * step_x, step_x) *
                            triangle(v + 0.5 - box.top - (y + 0.5) * step_y, step_y);
      weights += weight;
      sum += weight * image.pixels[static_cast<std::size_t>(v * image.size.width + u) * 4 + channel];
    }
  return (sum / weights / 255 - mean[channel]) / deviation[channel];
}

TEST(Resizer, MatchesTheDefinitionInDoublePrecision) {
  struct Case {
    ImageSize size;
    Box box;
    int out_size;
  };
  const std::vector<Case> cases = {{{50, 40}, {0, 0, 50, 40}, 16},
                                   {{50, 40}, {7, 3, 20, 31}, 32},
                                   {{9, 9}, {2, 2, 3, 4}, 21},
                                   {{33, 70}, {1.25, 10.75, 30.5, 40.1}, 17},
                                   {{1, 1}, {0, 0, 1, 1}, 8},
                                   {{200, 5}, {0, 0, 200, 5}, 7},
                                   {{31, 17}, {30.4, 16.2, 0.6, 0.8}, 5}};
  Resizer resizer(Preprocessing::imagenet);
  for (const Case& c : cases) {
    const auto pixels = random_pixels(c.size);
    const RgbxImage image{c.size, pixels};
    const auto size = static_cast<std::size_t>(c.out_size);
    for (const bool flip : {false, true}) {
      std::vector<float> out(3 * size * size);
      resizer.resize(image, c.box, flip, c.out_size, out);
      for (std::size_t channel = 0; channel < 3; ++channel)
        for (std::size_t y = 0; y < size; ++y)
          for (std::size_t x = 0; x < size; ++x) {
            const std::size_t from = flip ? size - 1 - x : x;
            ASSERT_NEAR(
                out[(channel * size + y) * size + x],
                reference(image, c.box, c.out_size, static_cast<int>(from), static_cast<int>(y), channel),
                2e-5)
                << c.size.width << " x " << c.size.height << " to " << size << " at " << x << ", " << y;
          }
    }
  }
}

TEST(Resizer, SameSizeCopiesThePixels) {
  const auto pixels = random_pixels({6, 6});
  std::vector<float> out(3 * 36);
  Resizer(Preprocessing::imagenet).resize({{6, 6}, pixels}, {0, 0, 6, 6}, false, 6, out);
  EXPECT_NEAR(out[0], (pixels[0] / 255.0 - 0.485) / 0.229, 1e-5);
  EXPECT_NEAR(out[36 + 7], (pixels[7 * 4 + 1] / 255.0 - 0.456) / 0.224, 1e-5);
  EXPECT_NEAR(out[72 + 35], (pixels[35 * 4 + 2] / 255.0 - 0.406) / 0.225, 1e-5);
}

TEST(Resizer, FacesOfTheRightSizeKeepEveryPixelExactly) {
  const auto pixels = random_pixels({7, 7});
  for (const bool flip : {false, true}) {
    std::vector<float> out(3 * 49);
    Resizer(Preprocessing::insightface).resize({{7, 7}, pixels}, {0, 0, 7, 7}, flip, 7, out);
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t i = 0; i < 49; ++i) {
        const std::size_t from = flip ? i / 7 * 7 + 6 - i % 7 : i;
        ASSERT_EQ(out[c * 49 + i], (static_cast<float>(pixels[from * 4 + c]) - 127.5F) * 0.0078125F);
      }
  }
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

TEST(Resizer, PixelsOutsideTheCropHaveNoInfluence) {
  std::vector<std::uint8_t> pixels(20 * 20 * 4, 255);
  for (std::size_t y = 5; y < 15; ++y)
    for (std::size_t x = 4; x < 12; ++x)
      for (std::size_t c = 0; c < 3; ++c) pixels[(y * 20 + x) * 4 + c] = 0;
  std::vector<float> out(3 * 36);
  Resizer(Preprocessing::imagenet).resize({{20, 20}, pixels}, {4, 5, 8, 10}, false, 6, out);
  for (std::size_t i = 0; i < 36; ++i) ASSERT_NEAR(out[i], -0.485 / 0.229, 1e-5);
}

}  // namespace
}  // namespace plumb
