// Which gradients are reduced together. Large messages use the link well, early ones hide behind backward.
#pragma once

#include <cstddef>
#include <vector>

namespace plumb {

struct BucketOptions {
  std::size_t first_bucket_bytes = 1u << 20;  // closes early, so that communication starts early
  std::size_t bucket_bytes = 25u << 20;
};

// Indices of gradients (given in the order in which backward finishes them) per bucket, order kept. A bucket
// is closed by the gradient that brings it to its limit (the rule of PyTorch's DistributedDataParallel,
// torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size).
std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<std::size_t>& gradient_bytes,
                                                     const BucketOptions& options);

}  // namespace plumb
