// The loops of batch norm on a CPU, and how they tile a tensor: rows of 16 floats. A lane belongs to the same
// channel in all rows of a group. Sums are kept per lane and slice, in an order that depends on the shape
// only, so statistics and sums don't depend on the number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "kernels/cpu/element_types.h"
#include "models/graph.h"

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
};

// nullopt if the layout's block neither divides 16 channels nor covers all channels.
std::optional<NormTiling> norm_tiling(const ChannelLayout& layout);

// Schedule of the two passes; it doesn't affect the sums. group_by_group: one thread does both passes over a
// group; otherwise all threads share the rows of `groups_at_once` groups, with a barrier between passes.
struct NormOrder {
  bool group_by_group = false;
  std::int64_t groups_at_once = 1;
};

struct NormForm {
  NormTiling tiling;
  Activation activation = Activation::none;
  NormOrder order;
  bool one_slope = false;
  double elements = 0;  // per channel
};

// Tensors of T, float or Bf16, have the tiling's layout; arrays of float are per channel.
template <typename T>
struct NormForward {
  NormForm form;
  double epsilon = 1e-5, momentum = 0.1;
  const T* in = nullptr;
  const float *scale = nullptr, *bias = nullptr;
  const T* residual = nullptr;   // or null
  const float* slope = nullptr;  // or null
  float *running_mean = nullptr, *running_variance = nullptr;
  T* out = nullptr;
  float *mean = nullptr, *inv_std = nullptr;
  LaneSums* sums = nullptr;  // kForwardSums per group and slice
};
// Per lane: sum of elements and sum of their squares.
inline constexpr std::int64_t kForwardSums = 2;
template <typename T>
void norm_forward(const NormForward<T>& at);

// d_residual, if not null, receives the residual's gradient: that of the activation's input. It may be d_out,
// and d_in, another one, may be d_out or d_second.
template <typename T>
struct NormBackward {
  NormForm form;
  const T *in = nullptr, *d_out = nullptr;
  const float *scale = nullptr, *bias = nullptr, *mean = nullptr, *inv_std = nullptr;
  const T* out = nullptr;       // for a relu after a residual: gives the mask; d_residual isn't null then
  const T* d_second = nullptr;  // added to d_out, or null
  const float* slope = nullptr;
  T* d_in = nullptr;
  float *d_scale = nullptr, *d_bias = nullptr;
  T* d_residual = nullptr;   // or null
  float* d_slope = nullptr;  // or null
  LaneSums* sums = nullptr;  // kBackwardSums per group and slice
};
// g, g (x - mean), the slope's gradient.
inline constexpr std::int64_t kBackwardSums = 3;
template <typename T>
void norm_backward(const NormBackward<T>& at);

}  // namespace plumb::cpu
