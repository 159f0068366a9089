#include "bench/data/batch_source.h"

#include "bench/data/image_loader.h"

namespace plumb {

std::unique_ptr<BatchSource> make_batch_source(const BatchSourceOptions& options) {
  if (!options.batch_file.empty()) return std::make_unique<FixedBatch>(batch_of_file(options));
  if (options.data == "synthetic") return std::make_unique<SyntheticBatch>(options);
  return std::make_unique<ImageLoader>(options);
}

}  // namespace plumb
