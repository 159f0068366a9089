#include "models/buckets.h"

#include <algorithm>

namespace plumb {

std::size_t bucket_limit(std::size_t from_last, const BucketOptions& options) {
  std::size_t limit = std::min(options.last_bucket_bytes, options.bucket_bytes);
  for (; from_last > 0 && limit < options.bucket_bytes; --from_last)
    limit = limit > options.bucket_bytes / kBucketGrowth ? options.bucket_bytes : limit * kBucketGrowth;
  return limit;
}

std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<std::size_t>& gradient_bytes,
                                                     const BucketOptions& options) {
  std::vector<std::vector<std::size_t>> buckets;  // buckets and their gradients in reverse order
  std::size_t bytes = 0;                          // of buckets.back()
  for (std::size_t gradient = gradient_bytes.size(); gradient-- > 0;) {
    const std::size_t more = gradient_bytes[gradient];
    if (buckets.empty() || bytes + more > bucket_limit(buckets.size() - 1, options)) {
      buckets.emplace_back();
      bytes = 0;
    }
    buckets.back().push_back(gradient);
    bytes += more;
  }
  for (std::vector<std::size_t>& bucket : buckets) std::reverse(bucket.begin(), bucket.end());
  std::reverse(buckets.begin(), buckets.end());
  return buckets;
}

}  // namespace plumb
