#include "tests/cuda_host/emulated/warp_functions.h"

namespace plumb::gpu::emulated {

void take_from_source(Warp& warp, std::uint32_t lanes) {
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    if ((lanes >> lane & 1U) == 0) continue;
    const std::uint32_t source = warp.source[lane] % kWarpLanes;
    warp.taken[lane] = lanes >> source & 1U ? warp.brought[source] : ~std::uint64_t{0};
  }
}

void take_nothing(Warp&, std::uint32_t) {}

}  // namespace plumb::gpu::emulated
