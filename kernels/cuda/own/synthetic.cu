#include "kernels/cuda/own/elements.h"
#include "kernels/cuda/own/synthetic.h"

namespace plumb::cuda {
namespace {

// random_block(key, index) of base/random.h: Philox4x32-10, Salmon et al., SC 2011, table 2 and section 3.2.
__device__ uint4 random_block(uint2 key, std::uint64_t index) {
  uint4 counter{static_cast<unsigned>(index), static_cast<unsigned>(index >> 32), 0, 0};
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter.x;
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter.z;
    counter = {static_cast<unsigned>(product1 >> 32) ^ counter.y ^ key.x, static_cast<unsigned>(product1),
               static_cast<unsigned>(product0 >> 32) ^ counter.w ^ key.y, static_cast<unsigned>(product0)};
    key = {key.x + 0x9E3779B9, key.y + 0xBB67AE85};
  }
  return counter;
}

// Element `index` of fill_normal(key, 0, 1, …): two words of a block make two values (Box and Muller, 1958).
__device__ float normal(uint2 key, std::uint64_t index) {
  constexpr float kTwoPi = 6.283185307F;
  const uint4 bits = random_block(key, index / 4);
  const unsigned radius_bits = index % 4 < 2 ? bits.x : bits.z;
  const unsigned angle_bits = index % 4 < 2 ? bits.y : bits.w;
  const float radius = sqrtf(-2 * logf((static_cast<float>(radius_bits) + 1) * 0x1p-32F));
  const float angle = kTwoPi * (static_cast<float>(angle_bits >> 8) * 0x1p-24F);
  return radius * (index % 2 == 0 ? cosf(angle) : sinf(angle));
}

// Block (p, n) generates 256 pixels of image n, its first thread the label. Reads nothing, writes up to
// 16 bytes per pixel; bound by arithmetic (ten rounds of Philox per element). Runs once, before training.
template <typename Of, int kHeld>
__global__ void synthetic_batch(uint2 image_key, uint2 label_key, std::uint64_t classes, Element<Of>* images,
                                std::int32_t* labels, std::int64_t pixels, int channels) {
  if (blockIdx.x == 0 && threadIdx.x == 0)
    labels[blockIdx.y] = static_cast<std::int32_t>((random_block(label_key, blockIdx.y).x * classes) >> 32);
  const std::int64_t pixel = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (pixel >= pixels) return;
  float values[kHeld];
#pragma unroll
  for (int c = 0; c < kHeld; ++c) {
    const std::int64_t element = (std::int64_t{blockIdx.y} * channels + c) * pixels + pixel;
    values[c] = c < channels ? normal(image_key, static_cast<std::uint64_t>(element)) : 0.0F;
  }
  store_pixel<Of>(images, blockIdx.y, pixel, pixels, channels, values);
}

}  // namespace

void launch_synthetic_batch(const SyntheticKeys& keys, std::int64_t classes, const ImageBatch& batch,
                            cudaStream_t stream) {
  const uint2 image_key{keys.images[0], keys.images[1]}, label_key{keys.labels[0], keys.labels[1]};
  with_layout(batch.layout, batch.dtype, [&]<typename Of>(Of) {
    const std::int64_t pixels = batch.shape.h * batch.shape.w;
    const dim3 grid(blocks_for(pixels, kThreads), static_cast<unsigned>(batch.shape.n));
    const auto kernel =
        batch.held_channels == 4 ? synthetic_batch<Of, 4> : synthetic_batch<Of, kPack<Element<Of>>>;
    gpu::launch(kernel, grid, kThreads, 0, stream, image_key, label_key, static_cast<std::uint64_t>(classes),
                as<Element<Of>>(batch.images), batch.labels, pixels, static_cast<int>(batch.shape.c));
  });
}

}  // namespace plumb::cuda
