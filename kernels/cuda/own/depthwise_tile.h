// Shared by the depthwise kernels: a thread's pixel and channels, and reads beyond an image's border. For .cu
// files only.
#pragma once

#include <gpu_runtime.h>

#include <cstdint>

#include "kernels/cuda/own/conv.h"
#include "kernels/cuda/own/elements.h"

namespace plumb::cuda {

// A thread's 16 bytes of channels, and its index among the threads of a row for these channels.
template <typename T>
struct DepthwisePlace {
  std::int64_t channel = 0, x = 0;
  __device__ explicit DepthwisePlace(std::int64_t channels) {
    const unsigned index = blockIdx.x * kDepthwiseThreads + threadIdx.x;
    const auto groups = static_cast<unsigned>(channels / kPack<T>);
    channel = std::int64_t{index % groups} * kPack<T>;
    x = index / groups;
  }
};

// 16 bytes of channels of each pixel of image blockIdx.z, or of the given image.
template <typename T>
struct Image {
  const T* first = nullptr;
  int height = 0, width = 0;
  std::int64_t channels = 0;

  __device__ Image(const T* images, std::int64_t h, std::int64_t w, std::int64_t c, std::int64_t channel,
                   std::int64_t image)
      : first(images + image * h * w * c + channel),
        height(static_cast<int>(h)),
        width(static_cast<int>(w)),
        channels(c) {}
  __device__ Image(const T* images, std::int64_t h, std::int64_t w, std::int64_t c, std::int64_t channel)
      : Image(images, h, w, c, channel, blockIdx.z) {}

  // Adjacent pixels of a row from column `left` on; 0 beyond the border.
  template <int kPixels>
  __device__ void row(int row, int left, Elements<T, kPack<T>> (&pixels)[kPixels]) const {
    const bool row_there = row >= 0 && row < height;
    const T* const begin = first + std::int64_t{row} * width * channels;
#pragma unroll
    for (int i = 0; i < kPixels; ++i) {
      const int column = left + i;
      pixels[i] = {};
      if (row_there && column >= 0 && column < width)
        pixels[i] = *reinterpret_cast<const Elements<T, kPack<T>>*>(begin + column * channels);
    }
  }
};

}  // namespace plumb::cuda
