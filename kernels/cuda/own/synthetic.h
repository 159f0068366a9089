// Synthetic batches generated on the GPU in its own layout: the values of bench/data/synthetic.cpp, without a
// copy from the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/random.h"
#include "kernels/cuda/own/elementwise.h"

namespace plumb::cuda {

// A rank's random streams are random.h's stream_key(seed, "synthetic images of rank R") and stream_key(seed,
// "synthetic labels of rank R").
struct SyntheticKeys {
  PhiloxKey images{}, labels{};
};
inline SyntheticKeys synthetic_keys(std::uint64_t seed, int rank) {
  const std::string of_rank = " of rank " + std::to_string(rank);
  return {.images = stream_key(seed, "synthetic images" + of_rank),
          .labels = stream_key(seed, "synthetic labels" + of_rank)};
}

// Element i of [n, c, h, w] is standard normal value i of fill_normal(), rounded to the batch's dtype.
// labels[n] = (first word of block n) * classes / 2^32.
void launch_synthetic_batch(const SyntheticKeys& keys, std::int64_t classes, const ImageBatch& batch,
                            cudaStream_t stream);

}  // namespace plumb::cuda
