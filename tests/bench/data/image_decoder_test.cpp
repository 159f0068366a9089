#include "bench/data/image_decoder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "tests/bench/image_files.h"

namespace plumb {
namespace {

Pixel smooth(int x, int y) {
  return {static_cast<std::uint8_t>(100 + x), static_cast<std::uint8_t>(200 - y),
          static_cast<std::uint8_t>(50 + x + y), 0};
}

Pixel noise(int x, int y) {
  const PhiloxBlock bits =
      random_block({1, 2}, static_cast<std::uint64_t>(y) * 1000 + static_cast<unsigned>(x));
  return {static_cast<std::uint8_t>(bits[0]), static_cast<std::uint8_t>(bits[1]),
          static_cast<std::uint8_t>(bits[2]), 0};
}

void expect_pixel(const RgbxImage& image, int x, int y, std::array<int, 3> rgb, int tolerance) {
  for (std::size_t c = 0; c < 3; ++c)
    EXPECT_NEAR(image.pixels[static_cast<std::size_t>(y * image.size.width + x) * 4 + c], rgb[c], tolerance)
        << "channel " << c << " at " << x << ", " << y;
}

// All of it.
RgbxImage decode(ImageDecoder& decoder, const std::vector<std::uint8_t>& jpeg, int eighths = 8) {
  const ImageSize size = decoder.read_header(jpeg);
  return decoder.decode({0, 0, size}, eighths).image;
}

TEST(ImageDecoder, ColorImagesKeepTheirPixels) {
  ImageDecoder decoder;
  for (const JpegKind kind : {JpegKind::color, JpegKind::progressive}) {
    const auto jpeg = encode_jpeg(61, 43, kind, smooth);
    EXPECT_EQ(decoder.read_header(jpeg), (ImageSize{61, 43}));
    const RgbxImage image = decoder.decode({0, 0, {61, 43}}, 8).image;
    ASSERT_EQ(image.size, (ImageSize{61, 43}));
    ASSERT_EQ(image.pixels.size(), 61U * 43 * 4);
    for (const auto& [x, y] : {std::pair{0, 0}, {60, 0}, {30, 21}, {60, 42}}) {
      const Pixel wanted = smooth(x, y);
      expect_pixel(image, x, y, {wanted[0], wanted[1], wanted[2]}, 6);
    }
  }
}

TEST(ImageDecoder, GreyBecomesThreeEqualChannels) {
  ImageDecoder decoder;
  const auto jpeg = encode_jpeg(20, 10, JpegKind::gray, [](int, int) { return Pixel{77, 0, 0, 0}; });
  expect_pixel(decode(decoder, jpeg), 19, 9, {77, 77, 77}, 1);
}

TEST(ImageDecoder, InksBecomeColors) {
  ImageDecoder decoder;
  // Cyan 20 %, magenta 0, yellow 60 %, black 40 %: red, green, blue are 255 (1 - ink) (1 - black).
  const std::array<int, 3> rgb = {122, 153, 61};
  const auto plain = encode_jpeg(16, 16, JpegKind::cmyk_without_marker, [](int, int) {
    return Pixel{51, 0, 153, 102};
  });
  expect_pixel(decode(decoder, plain), 5, 5, rgb, 2);
  const auto adobe = encode_jpeg(16, 16, JpegKind::cmyk_with_adobe_marker, [](int, int) {
    return Pixel{204, 255, 102, 153};
  });
  expect_pixel(decode(decoder, adobe), 5, 5, rgb, 2);
}

TEST(ImageDecoder, AnExifOrientationIsIgnored) {
  ImageDecoder decoder;
  std::vector<std::uint8_t> jpeg = encode_jpeg(61, 43, JpegKind::color, smooth);
  // APP1 with a TIFF directory of one entry: Orientation (0x0112), a short, 6: turn right.
  const std::vector<std::uint8_t> exif = {0xff, 0xe1, 0, 34, 'E', 'x', 'i', 'f', 0, 0,    'M', 'M',
                                          0,    42,   0, 0,  0,   8,   0,   1,   1, 0x12, 0,   3,
                                          0,    0,    0, 1,  0,   6,   0,   0,   0, 0,    0,   0};
  jpeg.insert(jpeg.begin() + 2, exif.begin(), exif.end());
  const RgbxImage image = decode(decoder, jpeg);
  ASSERT_EQ(image.size, (ImageSize{61, 43}));
  const Pixel wanted = smooth(60, 0);
  expect_pixel(image, 60, 0, {wanted[0], wanted[1], wanted[2]}, 6);
}

TEST(ImageDecoder, DecodesAtAFractionOfTheSize) {
  ImageDecoder decoder;
  const auto jpeg = encode_jpeg(61, 43, JpegKind::color, smooth);
  for (const int eighths : {1, 2, 4}) {
    const RgbxImage image = decode(decoder, jpeg, eighths);
    EXPECT_EQ(image.size, (ImageSize{(61 * eighths + 7) / 8, (43 * eighths + 7) / 8}));
    const Pixel wanted = smooth(4 / eighths, 4 / eighths);
    expect_pixel(image, 0, 0, {wanted[0], wanted[1], wanted[2]}, 8);
  }
}

// A part's pixels, each at its place in the whole image.
void expect_part_of(const RgbxImage& whole, const std::vector<std::uint8_t>& pixels, const DecodedPart& part,
                    const Box& box) {
  const int left = static_cast<int>(std::lround(box.left - part.box.left)),
            top = static_cast<int>(std::lround(box.top - part.box.top));
  EXPECT_NEAR(box.left - part.box.left, left, 1e-9);
  EXPECT_NEAR(box.top - part.box.top, top, 1e-9);
  EXPECT_DOUBLE_EQ(box.width, part.box.width);
  EXPECT_DOUBLE_EQ(box.height, part.box.height);
  const int end_x = static_cast<int>(std::ceil(part.box.left + part.box.width - 1e-9)),
            end_y = static_cast<int>(std::ceil(part.box.top + part.box.height - 1e-9));
  ASSERT_LE(end_x, part.image.size.width);
  ASSERT_LE(end_y, part.image.size.height);
  for (int y = static_cast<int>(part.box.top); y < end_y; ++y)
    for (int x = static_cast<int>(part.box.left); x < end_x; ++x)
      for (std::size_t c = 0; c < 3; ++c)
        ASSERT_EQ(part.image.pixels[static_cast<std::size_t>(y * part.image.size.width + x) * 4 + c],
                  pixels[static_cast<std::size_t>((top + y) * whole.size.width + left + x) * 4 + c])
            << "channel " << c << " at " << x << ", " << y;
}

TEST(ImageDecoder, APartHasThePixelsOfTheWholeImage) {
  ImageDecoder decoder;
  const ImageSize full{203, 150};
  for (const JpegKind kind :
       {JpegKind::color, JpegKind::progressive, JpegKind::gray, JpegKind::cmyk_with_adobe_marker}) {
    const auto jpeg = encode_jpeg(full.width, full.height, kind, noise);
    for (const int eighths : {1, 2, 4, 8}) {
      const RgbxImage whole = decode(decoder, jpeg, eighths);
      const std::vector<std::uint8_t> pixels(whole.pixels.begin(), whole.pixels.end());
      for (std::uint64_t round = 0; round < 30; ++round) {
        const PhiloxBlock bits = random_block({7, 7}, round);
        ImagePart part{static_cast<int>(bits[0] % 203), static_cast<int>(bits[1] % 150), {}};
        part.size = {static_cast<int>(1 + bits[2] % static_cast<unsigned>(203 - part.left)),
                     static_cast<int>(1 + bits[3] % static_cast<unsigned>(150 - part.top))};
        const double x = whole.size.width / 203.0, y = whole.size.height / 150.0;
        decoder.read_header(jpeg);
        expect_part_of(whole, pixels, decoder.decode(part, eighths),
                       {part.left * x, part.top * y, part.size.width * x, part.size.height * y});
      }
    }
  }
}

TEST(ImageDecoder, AFileCutBehindThePartIsCorrupt) {
  ImageDecoder decoder;
  for (const JpegKind kind : {JpegKind::color, JpegKind::progressive}) {
    auto jpeg = encode_jpeg(64, 64, kind, noise);
    jpeg.resize(jpeg.size() * 3 / 4);
    decoder.read_header(jpeg);
    EXPECT_THROW(decoder.decode({10, 4, {20, 8}}, 8), CorruptImage);
  }
}

TEST(ImageDecoder, DamageCountsInThePartAndAboveIt) {
  ImageDecoder decoder;
  const auto jpeg = encode_jpeg(64, 64, JpegKind::color, noise);
  auto damaged = jpeg;
  damaged[jpeg.size() / 2] = 0xff, damaged[jpeg.size() / 2 + 1] = 0xd9;
  for (const int top : {20, 50}) {
    decoder.read_header(damaged);
    EXPECT_THROW(decoder.decode({10, top, {20, 14}}, 8), CorruptImage) << top;
  }
  const auto top_of = [&](const std::vector<std::uint8_t>& file) {
    decoder.read_header(file);
    const DecodedPart part = decoder.decode({10, 0, {20, 14}}, 8);
    return std::vector<std::uint8_t>(part.image.pixels.begin(), part.image.pixels.end());
  };
  EXPECT_EQ(top_of(damaged), top_of(jpeg));
}

// Damage in arithmetic code shows rarely, as most codes are some image's.
TEST(ImageDecoder, DamagedArithmeticCodeIsCorruptWhereItShows) {
  ImageDecoder decoder;
  const auto jpeg = encode_jpeg(64, 64, JpegKind::arithmetic, noise);
  EXPECT_NO_THROW(decode(decoder, jpeg));
  int corrupt = 0;
  for (std::size_t at = jpeg.size() / 2; at < jpeg.size() / 2 + 300; ++at) {
    auto damaged = jpeg;
    damaged[at] ^= 0x55;
    try {
      decode(decoder, damaged);
    } catch (const CorruptImage& reason) {
      EXPECT_STREQ(reason.what(), "Corrupt JPEG data: bad arithmetic code");
      ++corrupt;
    }
  }
  EXPECT_GT(corrupt, 0);
}

TEST(ImageDecoder, ScalesDownOnlyWhileTheCropStillCoversTheOutput) {
  EXPECT_EQ(eighths_that_cover({1792, 1792}, 224), 1);
  EXPECT_EQ(eighths_that_cover({1791, 5000}, 224), 2);
  EXPECT_EQ(eighths_that_cover({5000, 895}, 224), 4);
  EXPECT_EQ(eighths_that_cover({447, 448}, 224), 8);
  EXPECT_EQ(eighths_that_cover({10, 10}, 224), 8);
}

TEST(ImageDecoder, AFileCutAtAnyLengthIsCorrupt) {
  ImageDecoder decoder;
  for (const JpegKind kind : {JpegKind::color, JpegKind::progressive, JpegKind::gray}) {
    const auto jpeg = encode_jpeg(24, 17, kind, noise);
    for (std::size_t length = 0; length < jpeg.size(); ++length) {
      const std::vector<std::uint8_t> cut(jpeg.begin(), jpeg.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_THROW(decode(decoder, cut), CorruptImage) << "length " << length << " of " << jpeg.size();
    }
    EXPECT_NO_THROW(decode(decoder, jpeg)) << "the decoder works after failures";
  }
}

TEST(ImageDecoder, RandomBytesAreCorrupt) {
  ImageDecoder decoder;
  for (std::uint64_t round = 0; round < 300; ++round) {
    std::vector<std::uint8_t> bytes(round * 3);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::uint8_t>(random_block({9, 9}, round * 4096 + i)[0]);
    if (round % 2 == 0 && bytes.size() > 3) bytes[0] = 0xFF, bytes[1] = 0xD8, bytes[2] = 0xFF;
    EXPECT_THROW(decode(decoder, bytes), CorruptImage);
  }
}

TEST(ImageDecoder, ChangedBytesNeverBreakIt) {
  ImageDecoder decoder;
  int corrupt = 0;
  for (const JpegKind kind : {JpegKind::color, JpegKind::progressive, JpegKind::cmyk_with_adobe_marker}) {
    const auto jpeg = encode_jpeg(33, 30, kind, noise);
    for (std::uint64_t round = 0; round < 1500; ++round) {
      std::vector<std::uint8_t> changed = jpeg;
      const PhiloxBlock bits = random_block({3, static_cast<std::uint32_t>(kind)}, round);
      changed[bits[0] % changed.size()] = static_cast<std::uint8_t>(bits[1]);
      if (round % 3 == 0)
        changed[bits[2] % std::min<std::size_t>(700, changed.size())] = static_cast<std::uint8_t>(bits[3]);
      try {
        const ImageSize size = decoder.read_header(changed);
        if (static_cast<std::int64_t>(size.width) * size.height > 1'000'000) continue;  // slow, not wrong
        const ImagePart part{size.width / 4, size.height / 3, {(size.width + 1) / 2, (size.height + 1) / 2}};
        decoder.decode(round % 5 == 0 ? ImagePart{0, 0, size} : part, 1 << (round % 4));
      } catch (const CorruptImage&) {
        ++corrupt;
      }
    }
  }
  EXPECT_GT(corrupt, 100);
}

TEST(ImageDecoder, TakesTheCoefficientsOfImagesInSeveralScansOnly) {
  ImageDecoder decoder;
  const auto bytes = [&](const std::vector<std::uint8_t>& jpeg) {
    decoder.read_header(jpeg);
    return decoder.coefficient_bytes();
  };
  EXPECT_EQ(bytes(encode_jpeg(203, 150, JpegKind::color, smooth)), 0U);
  // 4:2:0 in blocks of 8 x 8 pixels of two bytes: 26 x 20 of light, 13 x 10 of each color.
  EXPECT_EQ(bytes(encode_jpeg(203, 150, JpegKind::progressive, smooth)), 128U * (26 * 20 + 2 * 13 * 10));
  const auto photograph = progressive_jpeg(6000, 4000);
  EXPECT_EQ(bytes(photograph), 6U * 6000 * 4000);
  const RgbxImage image = decode(decoder, photograph, 1);
  EXPECT_EQ(image.size, (ImageSize{750, 500}));
  expect_pixel(image, 749, 499, {128, 128, 128}, 0);
}

TEST(ImageDecoder, MoreCoefficientsThanPlannedAreRefusedBeforeAnythingIsAllocated) {
  ImageDecoder decoder;
  try {
    decoder.read_header(progressive_jpeg(11584, 11584));
    FAIL() << "accepted";
  } catch (const CorruptImage& reason) {
    EXPECT_STREQ(
        reason.what(),
        "11584 x 11584 pixels in several scans take 767 MiB to decode, more than the 144 that are planned");
  }
}

TEST(ImageDecoder, AHeaderThatPromisesTooMuchIsRefusedBeforeAnythingIsAllocated) {
  auto jpeg = flat_jpeg(16, 16, {1, 2, 3, 0});
  for (std::size_t i = 0; i + 9 < jpeg.size(); ++i)
    if (jpeg[i] == 0xFF && jpeg[i + 1] == 0xC0)  // start of frame: length, precision, height, width
      jpeg[i + 5] = jpeg[i + 7] = 0xFD, jpeg[i + 6] = jpeg[i + 8] = 0x00;
  ImageDecoder decoder;
  try {
    decoder.read_header(jpeg);
    FAIL() << "accepted";
  } catch (const CorruptImage& reason) {
    EXPECT_NE(std::string(reason.what()).find("64768 x 64768"), std::string::npos) << reason.what();
  }
}

}  // namespace
}  // namespace plumb
