#include <gtest/gtest.h>

#include "bench/data/image_decoder.h"
#include "tests/bench/image_files.h"

namespace plumb {
namespace {

using Bytes = std::vector<std::uint8_t>;

void append(Bytes& bytes, std::initializer_list<int> values) {
  for (const int value : values) bytes.push_back(static_cast<std::uint8_t>(value));
}

// A gray progressive image whose one bit per block is refined over and over: 11 bytes a scan.
Bytes image_of_scans(int scans, int side) {
  Bytes jpeg;
  append(jpeg,
         {0xff, 0xd8, 0xff, 0xc2, 0, 11, 8, side >> 8, side & 255, side >> 8, side & 255, 1, 1, 0x11, 0});
  append(jpeg, {0xff, 0xdb, 0, 67, 0});
  jpeg.insert(jpeg.end(), 64, 1);
  append(jpeg, {0xff, 0xc4, 0, 20, 0, 1});  // one code of one bit
  jpeg.insert(jpeg.end(), 15, 0);
  append(jpeg, {0});
  append(jpeg, {0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 0x01, 0});
  for (int scan = 1; scan < scans; ++scan) append(jpeg, {0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 0x10, 0});
  append(jpeg, {0xff, 0xd9});
  return jpeg;
}

std::string refusal(const Bytes& jpeg) {
  ImageDecoder decoder;
  try {
    decoder.read_header(jpeg);
  } catch (const CorruptImage& reason) {
    return reason.what();
  }
  return "";
}

TEST(JpegScans, AreCountedByTheirMarkers) {
  const auto shade = [](int x, int y) { return Pixel{static_cast<std::uint8_t>(x * y), 0, 0, 0}; };
  EXPECT_EQ(count_scans(encode_jpeg(40, 30, JpegKind::color, shade)), 1);
  EXPECT_EQ(count_scans(encode_jpeg(40, 30, JpegKind::gray, shade)), 1);
  EXPECT_EQ(count_scans(encode_jpeg(40, 30, JpegKind::progressive, shade)), 10);  // jpeg_simple_progression
  EXPECT_EQ(count_scans(image_of_scans(37, 8)), 37);
  EXPECT_EQ(count_scans({}), 1);
}

TEST(JpegScans, OfFilesThatAreCutAnywhereAreCountedWithinThem) {
  const Bytes jpeg = image_of_scans(5, 8);
  std::int64_t before = 1;
  for (std::size_t length = 0; length <= jpeg.size(); ++length) {
    const Bytes cut(jpeg.begin(),
                    jpeg.begin() + static_cast<std::ptrdiff_t>(length));  // its own end, for sanitizers
    const std::int64_t scans = count_scans(cut);
    EXPECT_GE(scans, before);
    before = scans;
  }
  EXPECT_EQ(before, 5);
}

TEST(JpegScans, TooManyAreCorrupt) {
  EXPECT_EQ(refusal(image_of_scans(100, 8)), "");
  EXPECT_EQ(refusal(image_of_scans(10'000, 8)), "10000 scans, more than any encoder writes");
  EXPECT_EQ(refusal(image_of_scans(12, 6000)), "");
  EXPECT_EQ(refusal(image_of_scans(90, 6000)), "90 scans over 36000000 pixels, more than any photograph");
}

}  // namespace
}  // namespace plumb
