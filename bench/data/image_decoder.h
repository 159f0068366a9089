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

// Whole pixels of an image.
struct ImagePart {
  int left = 0, top = 0;
  ImageSize size;
};

// A part of an image that may begin and end inside a pixel.
struct Box {
  double left = 0, top = 0, width = 0, height = 0;
};

// Four bytes per pixel, rows without gaps: red, green, blue and one that means nothing.
struct RgbxImage {
  ImageSize size;
  std::span<const std::uint8_t> pixels;
};

// The part that was asked for lies at `box`; pixels around it belong to the image, too.
struct DecodedPart {
  RgbxImage image;
  Box box;
};

// An image that can't be decoded; what() is the reason in a few words.
class CorruptImage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The smallest of 1, 2, 4 and 8 eighths at which a part of `part` pixels still covers `wanted` x `wanted`
// pixels; 8 if none does.
int eighths_that_cover(ImageSize part, int wanted);

// Decodes one image after another into buffers that it keeps. Gray, RGB, YCbCr, CMYK and YCCK images; a file
// that ends early or whose data contradict themselves is corrupt, even where a viewer would show something.
// An Exif orientation is ignored, as the data loaders of PyTorch and MXNet do.
class ImageDecoder {
 public:
  // More than this is refused as corrupt: a header may promise any size.
  static constexpr std::int64_t kMostPixels = std::int64_t{1} << 27;
  // An image in several scans is decoded from all its coefficients: 25 megapixels in 4:4:4, 50 in 4:2:0, more
  // than progressive photographs have.
  static constexpr std::size_t kMostCoefficientBytes = std::size_t{144} << 20;

  ImageDecoder();
  ~ImageDecoder();
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  // The full size. `jpeg` must live until decode() has returned. Throws CorruptImage.
  ImageSize read_header(std::span<const std::uint8_t> jpeg);
  // Memory that decode() takes for the last read_header's coefficients; 0 for an image of one scan.
  std::size_t coefficient_bytes() const { return coefficient_bytes_; }
  // A part of the last read_header's image, at eighths/8 of its size (rounded up; smaller is faster), in the
  // same pixels as if all of it were decoded. Rows below it are only read if the file is cut short. Valid
  // until the next call of either function. Throws CorruptImage.
  DecodedPart decode(const ImagePart& part, int eighths);

 private:
  struct Jpeg;  // libjpeg's own state
  // libjpeg's errors jump back into this function only. `calls` must not create objects with destructors: the
  // jump skips them.
  template <typename Calls>
  void run(const Calls& calls);
  void read_rows(unsigned end);
  // The rows and columns that `box` needs.
  void choose_pixels(const Box& box);

  std::unique_ptr<Jpeg> jpeg_;
  std::span<const std::uint8_t> bytes_;
  unsigned first_column_ = 0, columns_ = 0, first_row_ = 0, end_row_ = 0;  // of those in pixels_
  std::size_t coefficient_bytes_ = 0;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace plumb
