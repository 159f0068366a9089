// Which gradients are reduced together. Large messages use the link well; small ones at the end of backward
// leave little to wait for.
#pragma once

#include <cstddef>
#include <vector>

#include "base/option_defaults.h"

namespace plumb {

// A bucket may take so many times the bytes of the one behind it. Where a network halves height and width and
// doubles channels, a convolution keeps its multiply-accumulates and gets four times the weights: buckets
// that shrink by four towards the end of backward each have about the same time to hide behind.
inline constexpr std::size_t kBucketGrowth = 4;

struct BucketOptions {
  // Nothing of backward is left to hide the last bucket. Below 1 MiB a collective's time is mostly latency
  // (time = overhead + bytes / bandwidth, nccl-tests, doc/PERFORMANCE.md), so that less wins little; 1 MiB is
  // also what PyTorch's DistributedDataParallel sets apart for the gradients that come last
  // (torch/nn/parallel/distributed.py, _DEFAULT_FIRST_BUCKET_BYTES).
  std::size_t last_bucket_bytes = 1u << 20;
  std::size_t bucket_bytes = std::size_t{kDefaults.bucket_mb} << 20;  // of the largest buckets
};

// Bytes that a bucket may take; `from_last`: 0 for the last one, 1 for the one in front of it, …
// last_bucket_bytes * kBucketGrowth^from_last, at most bucket_bytes.
std::size_t bucket_limit(std::size_t from_last, const BucketOptions& options);

// Indices of gradients (given in the order in which backward finishes them) per bucket, order kept. Filled
// from the last gradient on: a bucket is closed in front of the gradient that would bring it beyond its
// limit, and the first bucket takes the rest. A gradient beyond a limit has a bucket of its own.
std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<std::size_t>& gradient_bytes,
                                                     const BucketOptions& options);

}  // namespace plumb
