// How the loops of batch norm cut a tensor up: in rows of 16 floats whose lanes each belong to one channel,
// the same one in all rows of a group. Sums are kept lane by lane and slice by slice, in an order that only
// the shape decides.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/cpu/channel_layout.h"

namespace plumb::cpu {

inline constexpr int kLanes = 16;
// Sums of one quantity, one per lane.
using LaneSums = std::array<double, kLanes>;

struct NormTiling {
  std::int64_t channels = 0, images = 1, groups = 0;
  std::int64_t rows = 0;  // per image and group, the last one perhaps partial
  int tail = 0;           // lanes of that one; 0: it is whole
  int period = kLanes;    // lane j of a group is channel j % period of it
  std::int64_t row_stride = kLanes, group_stride = 0, image_stride = 0;  // elements
  std::int64_t slices = 1;                                               // of a group's rows

  // -1 for a lane of padding.
  std::int64_t channel(std::int64_t group, int lane) const {
    const std::int64_t channel = group * period + lane % period;
    return channel < channels ? channel : -1;
  }
  // Lanes that all rows of a group have: fewer than kLanes only in the last group of channels-last layouts.
  int width(std::int64_t group) const {
    if (group_stride != kLanes || row_stride == kLanes) return kLanes;
    return static_cast<int>(std::min<std::int64_t>(kLanes, channels - group * kLanes));
  }
  std::int64_t items() const { return groups * slices; }
  std::size_t bytes_of_group() const {
    return static_cast<std::size_t>(images * rows * kLanes) * sizeof(float);
  }
};

// Who does what when; the sums are the same in any order. group_by_group: one thread does both passes over a
// group; otherwise all threads share the rows of `groups_at_once` groups, and wait for each other in between.
struct NormOrder {
  bool group_by_group = false;
  std::int64_t groups_at_once = 1;
};
// For `tensors` tensors that both passes touch: so that they stay in a core's cache in between, or, where a
// group is too large for that, in the cache that cores share.
NormOrder norm_order(const NormTiling& tiling, int tensors, int threads);

// Nothing where the layout's blocks are neither a part of 16 channels nor all channels.
std::optional<NormTiling> norm_tiling(const ChannelLayout& layout);

}  // namespace plumb::cpu
