#include "tests/cuda_host/emulated/warp_functions.h"

namespace plumb::gpu::emulated {

void take_from_source(Warp& warp, std::uint32_t lanes) {
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    if ((lanes >> lane & 1U) == 0) continue;
    const std::uint32_t source = warp.source[lane] % kWarpLanes;
    warp.taken[lane] = lanes >> source & 1U ? warp.brought[source] : ~std::uint64_t{0};
  }
}

void take_votes(Warp& warp, std::uint32_t lanes) {
  std::uint32_t votes = 0;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    if (lanes >> lane & 1U && warp.brought[lane]) votes |= 1U << lane;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    if (lanes >> lane & 1U) warp.taken[lane] = votes;
}

void take_nothing(Warp&, std::uint32_t) {}

void take_matches(Warp& warp, std::uint32_t lanes) {
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    if ((lanes >> lane & 1U) == 0) continue;
    std::uint32_t same = 0;
    for (unsigned other = 0; other < kWarpLanes; ++other)
      if (lanes >> other & 1U && warp.brought[other] == warp.brought[lane]) same |= 1U << other;
    warp.taken[lane] = same;
  }
}

}  // namespace plumb::gpu::emulated
