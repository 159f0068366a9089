// JPEG files to resized pixels in a device's memory, beside training: what a device with a decoder offers to
// the threads that load images.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kernels/resize_plan.h"

namespace plumb {

// Who decoded an image: the GPU, or the CPU, and then why.
enum class Decoded : std::uint8_t {
  on_gpu,
  progressive,
  arithmetic_coded,
  several_scans,
  other_colours,  // neither grey nor YCbCr
  no_end,         // the file's end isn't an image's: what it holds is for the CPU to judge
  large,
  unsupported,
  failed
};
inline constexpr std::array<std::string_view, 9> kDecodedNames{
    "on the GPU",    "progressive", "arithmetic-coded", "several scans", "other colours",
    "no end marker", "large",       "not supported",    "decoder failed"};
using DecodedCounts = std::array<std::int64_t, kDecodedNames.size()>;

// Whole pixels of an image.
struct DecodedRegion {
  int image_width = 0, image_height = 0;
  int left = 0, top = 0, width = 0, height = 0;
};

// One thread's.
class DeviceDecoder {
 public:
  virtual ~DeviceDecoder() = default;
  // Decodes the region and resizes it as `plan` says, whose pixels are counted from the region's corner, to
  // `out` in device memory: [out_size, out_size, 3]. `out` is complete on return, if it is on_gpu; else why
  // not.
  virtual Decoded decode(std::span<const std::uint8_t> jpeg, const DecodedRegion& region,
                         const ResizePlan& plan, std::byte* out) = 0;
  // Copies page-locked bytes to `out` in device memory, where they are on return.
  virtual void upload(std::span<const std::uint8_t> pixels, std::byte* out) = 0;
};

class ImageDecoding {
 public:
  virtual ~ImageDecoding() = default;
  // "nvJPEG 13.0.2 and the GPU's JPEG engines"
  virtual std::string description() const = 0;
  // Device memory; freed with its last owner.
  virtual std::shared_ptr<std::byte> allocate(std::size_t bytes) = 0;
  // Call it in the thread that will use it. The decoding must outlive it.
  virtual std::unique_ptr<DeviceDecoder> make_decoder() = 0;
};

// Larger images are the CPU's, which decodes them at a half, a quarter or an eighth of their size.
inline constexpr std::int64_t kMostPixelsOnGpu = std::int64_t{1} << 22;
// Device memory for each thread, in a pool that all threads share: pixels, sums, and what the decoder itself
// takes. An image that finds no room in the pool is the CPU's, so for one that wants more than a thread's
// part it depends on the other threads who decodes it.
inline constexpr std::size_t kDecodingBytesPerWorker = std::size_t{64} << 20;

}  // namespace plumb
