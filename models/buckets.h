// Groups gradients into buckets for allreduce. Large messages use the link well; small ones at the end of
// backward leave little exposed time.
#pragma once

#include <cstddef>
#include <vector>

#include "base/option_defaults.h"

namespace plumb {

// Maximum size of a bucket relative to the next one. When a network halves height and width and doubles
// channels, a convolution keeps its multiply-accumulates and has four times the weights. Buckets that shrink
// by four towards the end of backward thus each have about the same compute time to overlap with.
inline constexpr std::size_t kBucketGrowth = 4;

struct BucketOptions {
  // The last bucket can't overlap with backward. Below 1 MiB a collective's time is mostly latency
  // (time = overhead + bytes / bandwidth, nccl-tests, doc/PERFORMANCE.md), so smaller sizes gain little.
  // PyTorch's DistributedDataParallel also uses 1 MiB for the gradients that come last
  // (torch/nn/parallel/distributed.py, _DEFAULT_FIRST_BUCKET_BYTES).
  std::size_t last_bucket_bytes = 1u << 20;
  std::size_t bucket_bytes = std::size_t{kDefaults.bucket_mb} << 20;  // maximum bucket size
};

// Size limit of a bucket: last_bucket_bytes * kBucketGrowth^from_last, at most bucket_bytes. `from_last`: 0
// for the last bucket, 1 for the one before it, …
std::size_t bucket_limit(std::size_t from_last, const BucketOptions& options);

// Gradient indices per bucket, in the order of `gradient_bytes` (the order in which backward finishes them).
// Filled from the last gradient backwards: a bucket closes before the gradient that would exceed its limit,
// and the first bucket takes the rest. A gradient above the limit gets its own bucket.
std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<std::size_t>& gradient_bytes,
                                                     const BucketOptions& options);

}  // namespace plumb
