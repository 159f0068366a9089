// image_speed FILE.jpg [IMAGES]: CPU time of an image from file to 224 x 224 bytes, in parts, beside
// libjpeg-turbo's plain decoding of all of it, in turn; means over the images (results/appendix/cpu.md).
#include <spdlog/fmt/fmt.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <vector>

#include "bench/data/augment.h"
#include "bench/data/resizer.h"

namespace plumb {
namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void measure(const std::vector<std::uint8_t>& jpeg, int images) {
  constexpr int kSize = 224;
  ImageDecoder decoder;
  Resizer resizer;
  std::vector<std::uint8_t> out(3 * kSize * kSize);
  double plain = 0, decoding = 0, resizing = 0;
  for (int i = 0; i < images; ++i) {
    const double start = cpu_seconds();
    decoder.decode({0, 0, decoder.read_header(jpeg)}, 8);
    const double whole = cpu_seconds();
    const Crop crop = random_crop(decoder.read_header(jpeg), {3, 4}, static_cast<std::uint64_t>(i));
    const DecodedPart part = decoder.decode(crop, eighths_that_cover(crop.size, kSize));
    const double decoded = cpu_seconds();
    resizer.resize(part.image, part.box, crop.flip, kSize, out);
    const double resized = cpu_seconds();
    plain += whole - start, decoding += decoded - whole, resizing += resized - decoded;
  }
  const double in_ms = 1e3 / images, all = decoding + resizing;
  fmt::print(
      "{:.3f} ms: {:.3f} for the crop's pixels, {:.3f} for resizing; {:.3f} for plain decoding: {:.2f} of "
      "it\n",
      all * in_ms, decoding * in_ms, resizing * in_ms, plain * in_ms, all / plain);
}

}  // namespace
}  // namespace plumb

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: image_speed FILE.jpg [IMAGES]\n");
    return 64;
  }
  std::ifstream file(argv[1], std::ios::binary);
  const std::vector<std::uint8_t> jpeg{std::istreambuf_iterator<char>(file), {}};
  plumb::measure(jpeg, argc > 2 ? std::atoi(argv[2]) : 1000);
}
