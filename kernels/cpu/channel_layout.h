// oneDNN's layouts as our own loops see them: [image][channel block][pixel][channel in block].
#pragma once

#include <cstdint>

namespace plumb::cpu {

// block 1: nchw; 8 or 16: nChw8c, nChw16c with the last block zero-padded; block = channels: nhwc and
// row-major [n, c].
struct ChannelLayout {
  std::int64_t images = 1, channels = 1, pixels = 1, block = 1;

  std::int64_t blocks() const { return (channels + block - 1) / block; }
  std::int64_t image_stride() const { return blocks() * pixels * block; }  // elements, padding included
  std::int64_t offset(std::int64_t channel, std::int64_t pixel) const {    // inside an image
    return (channel / block * pixels + pixel) * block + channel % block;
  }
};

}  // namespace plumb::cpu
