#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "bench/data/image_decoder.h"

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

// Returns why the decoder refuses a corner of the image; empty if it decodes it.
std::string refusal(const Bytes& jpeg) {
  ImageDecoder decoder;
  try {
    decoder.read_header(jpeg);
    decoder.decode({.size = {8, 8}}, 8);
  } catch (const CorruptImage& reason) {
    return reason.what();
  }
  return "";
}

TEST(JpegScans, TooManyAreCorrupt) {
  // These scans have no data, which the decoder reports only after it has read them all.
  for (const Bytes& few : {image_of_scans(100, 8), image_of_scans(12, 6000)})
    EXPECT_EQ(refusal(few).find("or more scans"), std::string::npos) << refusal(few);
  EXPECT_EQ(refusal(image_of_scans(10'000, 8)),
            "101 or more scans of 64 pixels each, more than any photograph needs");
  EXPECT_EQ(refusal(image_of_scans(90, 6000)),
            "15 or more scans of 36000000 pixels each, more than any photograph needs");
}

}  // namespace
}  // namespace plumb
