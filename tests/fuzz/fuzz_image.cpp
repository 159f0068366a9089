// A JPEG file, from bytes to the network's input. The first byte selects the crop.
#include <vector>

#include "bench/data/augment.h"
#include "bench/data/resizer.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

namespace {

// Larger images run the same code, only slower.
constexpr std::int64_t kMostPixels = 1 << 18;
constexpr int kOutSize = 8;

void decode(ImageDecoder& decoder, std::span<const std::uint8_t> jpeg, std::uint64_t sample) {
  const auto preprocessing = sample % 2 ? Preprocessing::imagenet : Preprocessing::insightface;
  const ImageSize full = decoder.read_header(jpeg);
  if (std::int64_t{full.width} * full.height > kMostPixels) return;
  const Crop crop = crop_for(preprocessing, full, {}, sample);
  const DecodedPart part = decoder.decode(crop, eighths_that_cover(crop.size, kOutSize));
  std::vector<std::uint8_t> pixels(3 * kOutSize * kOutSize);
  Resizer().resize(part.image, part.box, crop.flip, kOutSize, pixels);
}

}  // namespace

FUZZ_TARGET(image) {
  if (size < 1) return 0;
  ImageDecoder decoder;
  for (int turn = 0; turn < 2; ++turn)  // the second time with state left by the first
    refuse_or([&] { decode(decoder, {data + 1, size - 1}, data[0]); });
  return 0;
}
