// JPEG files to pixels, by libjpeg-turbo.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

namespace plumb {

struct ImageSize {
  int width = 0, height = 0;  // pixels
  bool operator==(const ImageSize&) const = default;
};

// Four bytes per pixel, rows without gaps: red, green, blue and one that means nothing.
struct RgbxImage {
  ImageSize size;
  std::span<const std::uint8_t> pixels;
};

// An image that can't be decoded; what() is the reason in a few words.
class CorruptImage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The smallest of 1, 2, 4 and 8 eighths at which a part of `part` pixels still covers `wanted` x `wanted`
// pixels; 8 if none does.
int eighths_that_cover(ImageSize part, int wanted);

// Decodes one image after another into buffers that it keeps. Grey, RGB, YCbCr, CMYK and YCCK images; a file
// that ends early or whose data contradict themselves is corrupt, even where a viewer would show something,
// and so is one of too many scans (jpeg_scans.h). Pixels stay as they are stored: an Exif orientation is
// ignored, as the data loaders of PyTorch and MXNet do.
class ImageDecoder {
 public:
  // More than this is refused as corrupt: a header may promise any size.
  static constexpr std::int64_t kMostPixels = std::int64_t{1} << 27;

  ImageDecoder();
  ~ImageDecoder();
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  // The full size. `jpeg` must live until decode() has returned. Throws CorruptImage.
  ImageSize read_header(std::span<const std::uint8_t> jpeg);
  // The image of the last read_header, at eighths/8 of its size (rounded up; the scaling is part of the
  // inverse DCT, so smaller is faster). Valid until the next call of either function. Throws CorruptImage.
  RgbxImage decode(int eighths);

 private:
  struct Jpeg;  // libjpeg's own state
  enum class Stage { header, start, rows };
  // The one function into which libjpeg's errors jump.
  void run(Stage stage);

  std::unique_ptr<Jpeg> jpeg_;
  std::span<const std::uint8_t> bytes_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace plumb
