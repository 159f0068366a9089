// Tiling of a tensor for the batch norm loops: rows of 16 floats. A lane belongs to the same channel in all
// rows of a group. Sums are kept per lane and slice, in an order that depends on the shape only.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace plumb::cpu {

// oneDNN's layouts as our own loops see them: [image][channel block][pixel][channel in block].
// block 1: nchw; 8 or 16: nChw8c, nChw16c with the last block zero-padded; block = channels: nhwc and
// row-major [n, c].
struct ChannelLayout {
  std::int64_t images = 1, channels = 1, pixels = 1, block = 1;

  std::int64_t blocks() const { return (channels + block - 1) / block; }
  std::int64_t image_stride() const { return blocks() * pixels * block; }  // elements, padding included
  std::int64_t offset(std::int64_t channel, std::int64_t pixel) const {    // inside an image
    return (channel / block * pixels + pixel) * block + channel % block;
  }
};

inline constexpr int kLanes = 16;
// Sums of one quantity, one per lane.
using LaneSums = std::array<double, kLanes>;

struct NormTiling {
  std::int64_t channels = 0, images = 1, groups = 0;
  std::int64_t rows = 0;  // per image and group; the last one may be partial
  int tail = 0;           // lanes of a partial last row; 0: none
  int period = kLanes;    // lane j is channel j % period of its group
  std::int64_t row_stride = kLanes, group_stride = 0, image_stride = 0;  // elements
  std::int64_t slices = 1;                                               // of a group's rows

  // -1 for a lane of padding.
  std::int64_t channel(std::int64_t group, int lane) const {
    const std::int64_t channel = group * period + lane % period;
    return channel < channels ? channel : -1;
  }
  // Lanes in use in all rows of a group: below kLanes only in the last group of channels-last layouts.
  int width(std::int64_t group) const {
    if (group_stride != kLanes || row_stride == kLanes) return kLanes;
    return static_cast<int>(std::min<std::int64_t>(kLanes, channels - group * kLanes));
  }
  std::int64_t items() const { return groups * slices; }
  std::size_t elements_of_group() const { return static_cast<std::size_t>(images * rows * kLanes); }
};

// Schedule of the two passes; it doesn't affect the sums. group_by_group: one thread does both passes over a
// group; otherwise all threads share the rows of `groups_at_once` groups, with a barrier between passes.
struct NormOrder {
  bool group_by_group = false;
  std::int64_t groups_at_once = 1;
};
// Keeps the tensors of both passes, `bytes_per_element` in all, in a core's cache between passes, or in
// the shared cache if a group is too large for that.
NormOrder norm_order(const NormTiling& tiling, std::size_t bytes_per_element, int threads);

// nullopt if the layout's block neither divides 16 channels nor covers all channels.
std::optional<NormTiling> norm_tiling(const ChannelLayout& layout);

}  // namespace plumb::cpu
