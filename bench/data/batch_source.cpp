#include "bench/data/batch_source.h"

#include "bench/data/batch_file.h"
#include "bench/data/image_loader.h"
#include "bench/data/synthetic.h"

namespace plumb {

std::unique_ptr<BatchSource> make_batch_source(const BatchSourceOptions& options) {
  if (!options.batch_file.empty()) return std::make_unique<BatchFileSource>(options);
  if (options.data == "synthetic") return std::make_unique<SyntheticSource>(options);
  return std::make_unique<ImageLoader>(options);
}

}  // namespace plumb
