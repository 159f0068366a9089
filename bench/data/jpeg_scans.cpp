#include "bench/data/jpeg_scans.h"

#include <algorithm>
#include <cstddef>

#include "base/text.h"
#include "bench/data/image_decoder.h"

namespace plumb {
namespace {

// ITU-T T.81, table B.1.
constexpr std::uint8_t kMark = 0xff, kEndOfImage = 0xd9, kStartOfScan = 0xda;

// Those without a segment behind them: stuffed bytes, TEM, RST0 to RST7, SOI.
bool stands_alone(std::uint8_t marker) {
  return marker <= 0x01 || (marker >= 0xd0 && marker <= 0xd8);
}

// SOF0 to SOF15, but for DHT, JPG and DAC, which lie between them.
bool begins_frame(std::uint8_t marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

bool is_progressive(std::uint8_t frame) {
  return (frame & 0x03) == 0x02;
}

}  // namespace

std::int64_t count_scans(std::span<const std::uint8_t> jpeg) {
  std::int64_t scans = 0;
  std::uint8_t frame = 0, components = 0;
  for (std::size_t at = 0; at + 1 < jpeg.size();) {
    at = static_cast<std::size_t>(std::ranges::find(jpeg.subspan(at), kMark) - jpeg.begin());
    if (at + 1 >= jpeg.size()) break;
    const std::uint8_t marker = jpeg[at + 1];
    if (marker == kMark) {  // fill bytes
      ++at;
      continue;
    }
    at += 2;
    if (stands_alone(marker)) continue;
    if (marker == kEndOfImage || at + 2 > jpeg.size()) break;
    const std::span<const std::uint8_t> segment = jpeg.subspan(at);
    if (begins_frame(marker) && segment.size() > 7) {
      frame = marker;
      components = segment[7];
    }
    if (marker == kStartOfScan) {
      ++scans;
      const bool has_all = segment.size() > 2 && segment[2] == components;
      if (scans == 1 && has_all && !is_progressive(frame)) return 1;
    }
    at += std::max<std::size_t>(2, std::size_t{segment[0]} << 8 | segment[1]);
  }
  return std::max<std::int64_t>(scans, 1);
}

void require_few_scans(std::span<const std::uint8_t> jpeg, std::int64_t pixels) {
  const std::int64_t scans = count_scans(jpeg);
  if (scans > kMostScans) throw CorruptImage(fmt::format("{} scans, more than any encoder writes", scans));
  if (scans > 1 && pixels > kMostScannedPixels / scans)
    throw CorruptImage(fmt::format("{} scans over {} pixels, more than any photograph", scans, pixels));
}

}  // namespace plumb
