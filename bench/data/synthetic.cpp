// Made-up data: one batch per rank.
#include "base/random.h"
#include "base/text.h"
#include "bench/data/batch_source.h"

namespace plumb {

FixedBatch synthetic_batch(const BatchSourceOptions& options) {
  const auto images = static_cast<std::size_t>(options.batch_per_device);
  const auto pixels = static_cast<std::size_t>(3 * options.image_size * options.image_size);
  std::vector<float> values(images * pixels);
  std::vector<std::int64_t> labels(images);
  const auto key_of = [&](const char* content) {
    return stream_key(options.seed, fmt::format("synthetic {} of rank {}", content, options.rank));
  };
  fill_normal(key_of("images"), 0, 1, values);
  const PhiloxKey label_key = key_of("labels");
  const auto classes = static_cast<std::uint64_t>(options.classes);
  for (std::size_t i = 0; i < labels.size(); ++i)  // bias of the product: under classes / 2^32
    labels[i] = static_cast<std::int64_t>((random_block(label_key, i)[0] * classes) >> 32);
  return {"synthetic images and labels", std::move(values), std::move(labels)};
}

}  // namespace plumb
