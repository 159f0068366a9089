#include "comm/buckets.h"

#include <utility>

namespace plumb {

std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<std::size_t>& gradient_bytes,
                                                     const BucketOptions& options) {
  std::vector<std::vector<std::size_t>> buckets;
  std::vector<std::size_t> open;
  std::size_t open_bytes = 0;
  for (std::size_t gradient = 0; gradient < gradient_bytes.size(); ++gradient) {
    open.push_back(gradient);
    open_bytes += gradient_bytes[gradient];
    const std::size_t limit = buckets.empty() ? options.first_bucket_bytes : options.bucket_bytes;
    if (open_bytes < limit) continue;
    buckets.push_back(std::move(open));
    open.clear();
    open_bytes = 0;
  }
  if (!open.empty()) buckets.push_back(std::move(open));
  return buckets;
}

}  // namespace plumb
