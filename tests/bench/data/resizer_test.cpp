#include "bench/data/resizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace plumb {
namespace {

std::vector<std::uint8_t> random_pixels(ImageSize size) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.width) *
                                   static_cast<std::size_t>(size.height) * 4);
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<std::uint8_t>(random_block({5, 6}, i)[0]);
  return pixels;
}

// One output value by definition: all pixels of the box, weighted by the product of two triangles.
double by_definition(const RgbxImage& image, const Box& box, int out_size, int x, int y,
                     std::size_t channel) {
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
  return sum / weights;
}

struct ResizeCase {
  ImageSize size;
  Box box;
  int out_size;
};

TEST(Resizer, IsWithinSixTenthsOfAGreyLevelOfTheDefinition) {
  const std::vector<ResizeCase> cases = {{{50, 40}, {0, 0, 50, 40}, 16},
                                         {{50, 40}, {7, 3, 20, 31}, 32},
                                         {{9, 9}, {2, 2, 3, 4}, 21},
                                         {{33, 70}, {1.25, 10.75, 30.5, 40.1}, 17},
                                         {{1, 1}, {0, 0, 1, 1}, 8},
                                         {{200, 5}, {0, 0, 200, 5}, 7},
                                         {{31, 17}, {30.4, 16.2, 0.6, 0.8}, 5}};
  Resizer resizer;
  for (const ResizeCase& c : cases) {
    const auto pixels = random_pixels(c.size);
    const RgbxImage image{c.size, pixels};
    const auto size = static_cast<std::size_t>(c.out_size);
    for (const bool flip : {false, true}) {
      std::vector<std::uint8_t> out(3 * size * size);
      resizer.resize(image, c.box, flip, c.out_size, out);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t x = i / 3 % size, y = i / 3 / size, from = flip ? size - 1 - x : x;
        ASSERT_NEAR(
            out[i],
            by_definition(image, c.box, c.out_size, static_cast<int>(from), static_cast<int>(y), i % 3), 0.6)
            << c.size.width << " x " << c.size.height << " to " << size << " at " << x << ", " << y;
      }
    }
  }
}

TEST(Resizer, WhiteStaysWhiteHoweverManyPixelsAreAveraged) {
  for (const int width : {7, 8, 300, 3000}) {
    const std::vector<std::uint8_t> white(static_cast<std::size_t>(width) * 20 * 4, 255);
    std::vector<std::uint8_t> out(3 * 49);
    Resizer().resize({{width, 20}, white}, {0, 0, static_cast<double>(width), 20}, false, 7, out);
    // Each product loses up to 1/256 level, of which half is made up for, for 254 products at most.
    EXPECT_GE(std::ranges::min(out), width < 3000 ? 255 : 253) << width << " pixels";
  }
}

TEST(Resizer, ABoxOfTheRightSizeKeepsEveryPixel) {
  const auto pixels = random_pixels({27, 27});
  for (const bool flip : {false, true}) {
    std::vector<std::uint8_t> out(3 * 27 * 27);
    Resizer().resize({{27, 27}, pixels}, {0, 0, 27, 27}, flip, 27, out);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t pixel = i / 3, from = flip ? pixel / 27 * 27 + 26 - pixel % 27 : pixel;
      ASSERT_EQ(out[i], pixels[from * 4 + i % 3]) << i;
    }
  }
}

TEST(Resizer, WritesNothingButItsImage) {
  const auto pixels = random_pixels({40, 30});
  std::vector<std::uint8_t> out(3 * 19 * 19 + 64, 171);
  Resizer().resize({{40, 30}, pixels}, {0, 0, 40, 30}, false, 19, std::span(out).first(3 * 19 * 19));
  EXPECT_EQ(std::count(out.end() - 64, out.end(), 171), 64);
}

TEST(Resizer, PixelsOutsideTheCropHaveNoInfluence) {
  std::vector<std::uint8_t> pixels(20 * 20 * 4, 255);
  for (std::size_t y = 5; y < 15; ++y)
    for (std::size_t x = 4; x < 12; ++x)
      for (std::size_t c = 0; c < 3; ++c) pixels[(y * 20 + x) * 4 + c] = 0;
  std::vector<std::uint8_t> out(3 * 36, 1);
  Resizer().resize({{20, 20}, pixels}, {4, 5, 8, 10}, false, 6, out);
  EXPECT_EQ(out, std::vector<std::uint8_t>(3 * 36, 0));
}

}  // namespace
}  // namespace plumb
