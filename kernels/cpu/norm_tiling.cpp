#include "kernels/cpu/norm_tiling.h"

namespace plumb::cpu {
namespace {

// Constants: the tiling, and so the order of sums, may depend on the shape only.
constexpr std::int64_t kWantedItems = 512;  // work for many threads
constexpr std::int64_t kLeastRows = 128;    // per slice: 8 KiB, large compared with its sums

constexpr std::size_t kCoresCacheBytes = 512 * 1024;         // L2 caches have at least this size
constexpr std::size_t kSharedCacheBytes = 16 * 1024 * 1024;  // half of the L3 cache of a Zen 4 CCD

}  // namespace

std::optional<NormTiling> norm_tiling(const ChannelLayout& layout) {
  NormTiling tiling{.channels = layout.channels, .images = layout.images};
  std::int64_t pixels = layout.pixels;
  if (layout.blocks() == 1) {  // images are contiguous, like more pixels
    pixels *= tiling.images;
    tiling.images = 1;
  }
  tiling.image_stride = layout.image_stride();
  if (kLanes % layout.block == 0) {
    const std::int64_t run = pixels * layout.block;
    tiling.groups = layout.blocks();
    tiling.period = static_cast<int>(layout.block);
    tiling.rows = (run + kLanes - 1) / kLanes;
    tiling.tail = static_cast<int>(run % kLanes);
    tiling.group_stride = run;
  } else if (layout.block == layout.channels) {
    tiling.groups = (layout.channels + kLanes - 1) / kLanes;
    tiling.rows = pixels;
    tiling.row_stride = layout.channels;
    tiling.group_stride = kLanes;
  } else {
    return std::nullopt;
  }
  const std::int64_t enough = (kWantedItems + tiling.groups - 1) / tiling.groups;
  tiling.slices = std::clamp<std::int64_t>(tiling.images * tiling.rows / kLeastRows, 1,
                                           std::max<std::int64_t>(1, enough));
  return tiling;
}

NormOrder norm_order(const NormTiling& tiling, std::size_t bytes_per_element, int threads) {
  const std::size_t bytes = bytes_per_element * tiling.elements_of_group();
  const bool is_even = tiling.groups % threads == 0 || tiling.groups >= 8 * threads;
  const auto fit = static_cast<std::int64_t>(kSharedCacheBytes / bytes);
  return {.group_by_group = is_even && bytes <= kCoresCacheBytes,
          .groups_at_once = std::clamp<std::int64_t>(fit, 1, tiling.groups)};
}

}  // namespace plumb::cpu
