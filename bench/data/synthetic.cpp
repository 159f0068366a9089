#include "bench/data/synthetic.h"

#include "base/random.h"
#include "base/text.h"

namespace plumb {

SyntheticSource::SyntheticSource(const BatchSourceOptions& options)
    : images_(
          static_cast<std::size_t>(options.batch_per_device * 3 * options.image_size * options.image_size)),
      labels_(static_cast<std::size_t>(options.batch_per_device)) {
  const auto key_of = [&](const char* content) {
    return stream_key(options.seed, fmt::format("synthetic {} of rank {}", content, options.rank));
  };
  fill_normal(key_of("images"), 0, 1, images_);
  const PhiloxKey label_key = key_of("labels");
  const auto classes = static_cast<std::uint64_t>(options.classes);
  for (std::size_t i = 0; i < labels_.size(); ++i)  // bias of the product: under classes / 2^32
    labels_[i] = static_cast<std::int64_t>((random_block(label_key, i)[0] * classes) >> 32);
}

}  // namespace plumb
