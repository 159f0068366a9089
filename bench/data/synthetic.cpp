// Made-up data: one batch per rank.
#include <algorithm>

#include "base/random.h"
#include "base/text.h"
#include "bench/data/batch_source.h"
#include "models/weights.h"

namespace plumb {

std::int64_t SyntheticBatch::images_at_once() const {
  return std::clamp<std::int64_t>(kMostSyntheticElements / image_elements(), 1, options_.batch_per_device);
}

std::size_t SyntheticBatch::host_bytes() const {
  return static_cast<std::size_t>(images_at_once() * image_elements()) * sizeof(float);
}

void SyntheticBatch::write_lasting(const WritePart& write) const {
  const auto key_of = [&](const char* content) {
    return stream_key(options_.seed, fmt::format("synthetic {} of rank {}", content, options_.rank));
  };
  const PhiloxKey image_key = key_of("images"), label_key = key_of("labels");
  const auto classes = static_cast<std::uint64_t>(options_.classes);
  std::vector<float> images;
  std::vector<std::int64_t> labels;
  for (std::int64_t first = 0; first < options_.batch_per_device; first += images_at_once()) {
    const std::int64_t count = std::min(images_at_once(), options_.batch_per_device - first);
    images.resize(static_cast<std::size_t>(count * image_elements()));
    fill_together(images, [&](std::span<float> part, std::size_t at) {
      fill_normal(image_key, 0, 1, part, static_cast<std::uint64_t>(first * image_elements()) + at);
    });
    labels.resize(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < labels.size(); ++i) {  // bias of the product: under classes / 2^32
      const std::uint64_t bits = random_block(label_key, static_cast<std::uint64_t>(first) + i)[0];
      labels[i] = static_cast<std::int64_t>((bits * classes) >> 32);
    }
    write(first, {images, labels});
  }
}

}  // namespace plumb
