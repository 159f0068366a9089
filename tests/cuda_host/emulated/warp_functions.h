// Barriers and shuffles that kernels use, by their CUDA names (CUDA C++ Programming Guide, "Synchronization
// Functions", "Warp Shuffle Functions").
#pragma once

#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#include "tests/cuda_host/emulated/block.h"

namespace plumb::gpu::emulated {

template <typename T>
std::uint64_t packed(T value) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t) && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const void*>(&value), sizeof(T));
  return bits;
}
template <typename T>
T unpacked(std::uint64_t bits) {
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
  return value;
}

// Combine the lanes' values. Reading from an absent lane yields all bits set, which no reduction hides.
void take_from_source(Warp& warp, std::uint32_t lanes);
void take_nothing(Warp& warp, std::uint32_t lanes);

template <typename T>
T shuffle(unsigned mask, T value, unsigned source, std::source_location where) {
  return unpacked<T>(block().exchange(mask, packed(value), source, take_from_source, where));
}

}  // namespace plumb::gpu::emulated

using PlumbPlace = std::source_location;  // the call's place in the kernel, for messages

inline void __syncthreads(PlumbPlace at = PlumbPlace::current()) {
  plumb::gpu::emulated::block().synchronize(false, at);
}
inline int __syncthreads_or(int predicate, PlumbPlace at = PlumbPlace::current()) {
  return plumb::gpu::emulated::block().synchronize(predicate != 0, at) > 0;
}
inline void __syncwarp(unsigned mask = ~0U, PlumbPlace at = PlumbPlace::current()) {
  plumb::gpu::emulated::block().exchange(mask, 0, 0, plumb::gpu::emulated::take_nothing, at);
}

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, PlumbPlace at = PlumbPlace::current()) {
  const unsigned own = plumb::gpu::emulated::block().lane();
  const unsigned source = own ^ static_cast<unsigned>(lanes);
  const unsigned end = (own & ~(static_cast<unsigned>(width) - 1)) + static_cast<unsigned>(width);
  return plumb::gpu::emulated::shuffle(mask, value, source < end ? source : own, at);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned lanes, int width = 32,
                 PlumbPlace at = PlumbPlace::current()) {
  const unsigned own = plumb::gpu::emulated::block().lane();
  const unsigned begin = own & ~(static_cast<unsigned>(width) - 1);
  return plumb::gpu::emulated::shuffle(mask, value, own >= begin + lanes ? own - lanes : own, at);
}
