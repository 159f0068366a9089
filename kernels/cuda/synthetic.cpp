#include "kernels/cuda/synthetic.h"

#include <string>

namespace plumb::cuda {

SyntheticKeys synthetic_keys(std::uint64_t seed, int rank) {
  const std::string of_rank = " of rank " + std::to_string(rank);
  return {.images = stream_key(seed, "synthetic images" + of_rank),
          .labels = stream_key(seed, "synthetic labels" + of_rank)};
}

}  // namespace plumb::cuda
