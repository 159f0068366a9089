// Barriers, votes and shuffles by their CUDA names (CUDA C++ Programming Guide, "Synchronization Functions",
// "Warp Vote Functions", "Warp Shuffle Functions").
#pragma once

#include <bit>
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
void take_votes(Warp& warp, std::uint32_t lanes);
void take_nothing(Warp& warp, std::uint32_t lanes);
void take_matches(Warp& warp, std::uint32_t lanes);

template <typename T, typename Operation>
void take_reduction(Warp& warp, std::uint32_t lanes) {
  const int first = std::countr_zero(lanes);
  T result = unpacked<T>(warp.brought[first]);
  for (unsigned lane = first + 1; lane < kWarpLanes; ++lane)
    if (lanes >> lane & 1U) result = Operation{}(result, unpacked<T>(warp.brought[lane]));
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    if (lanes >> lane & 1U) warp.taken[lane] = packed(result);
}
struct Sum {
  template <typename T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Least {
  template <typename T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Greatest {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct AllBits {
  template <typename T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct AnyBits {
  template <typename T>
  T operator()(T a, T b) const {
    return a | b;
  }
};

template <typename T>
T shuffle(unsigned mask, T value, unsigned source, std::source_location where) {
  return unpacked<T>(block().exchange(mask, packed(value), source, take_from_source, where));
}
inline std::uint32_t vote(unsigned mask, bool predicate, std::source_location where) {
  return static_cast<std::uint32_t>(block().exchange(mask, predicate, 0, take_votes, where));
}
template <typename T, typename Operation>
T reduce(unsigned mask, T value, std::source_location where) {
  return unpacked<T>(block().exchange(mask, packed(value), 0, take_reduction<T, Operation>, where));
}

}  // namespace plumb::gpu::emulated

using PlumbPlace = std::source_location;  // the call's place in the kernel, for messages

inline void __syncthreads(PlumbPlace at = PlumbPlace::current()) {
  plumb::gpu::emulated::block().synchronize(false, at);
}
inline int __syncthreads_count(int predicate, PlumbPlace at = PlumbPlace::current()) {
  return static_cast<int>(plumb::gpu::emulated::block().synchronize(predicate != 0, at));
}
inline int __syncthreads_or(int predicate, PlumbPlace at = PlumbPlace::current()) {
  return __syncthreads_count(predicate, at) > 0;
}
inline int __syncthreads_and(int predicate, PlumbPlace at = PlumbPlace::current()) {
  return __syncthreads_count(predicate == 0, at) == 0;
}
inline void __syncwarp(unsigned mask = ~0U, PlumbPlace at = PlumbPlace::current()) {
  plumb::gpu::emulated::block().exchange(mask, 0, 0, plumb::gpu::emulated::take_nothing, at);
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, PlumbPlace at = PlumbPlace::current()) {
  const unsigned own = plumb::gpu::emulated::block().lane();
  const auto segment = static_cast<unsigned>(width);
  const unsigned source = (own & ~(segment - 1)) | (static_cast<unsigned>(lane) & (segment - 1));
  return plumb::gpu::emulated::shuffle(mask, value, source, at);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, PlumbPlace at = PlumbPlace::current()) {
  const unsigned own = plumb::gpu::emulated::block().lane();
  const unsigned source = own ^ static_cast<unsigned>(lanes);
  const unsigned end = (own & ~(static_cast<unsigned>(width) - 1)) + static_cast<unsigned>(width);
  return plumb::gpu::emulated::shuffle(mask, value, source < end ? source : own, at);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes, int width = 32,
                   PlumbPlace at = PlumbPlace::current()) {
  const unsigned own = plumb::gpu::emulated::block().lane();
  const unsigned end = (own & ~(static_cast<unsigned>(width) - 1)) + static_cast<unsigned>(width);
  return plumb::gpu::emulated::shuffle(mask, value, own + lanes < end ? own + lanes : own, at);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned lanes, int width = 32,
                 PlumbPlace at = PlumbPlace::current()) {
  const unsigned own = plumb::gpu::emulated::block().lane();
  const unsigned begin = own & ~(static_cast<unsigned>(width) - 1);
  return plumb::gpu::emulated::shuffle(mask, value, own >= begin + lanes ? own - lanes : own, at);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, PlumbPlace at = PlumbPlace::current()) {
  return plumb::gpu::emulated::vote(mask, predicate != 0, at);
}
inline int __any_sync(unsigned mask, int predicate, PlumbPlace at = PlumbPlace::current()) {
  return plumb::gpu::emulated::vote(mask, predicate != 0, at) != 0;
}
inline int __all_sync(unsigned mask, int predicate, PlumbPlace at = PlumbPlace::current()) {
  return plumb::gpu::emulated::vote(mask, predicate == 0, at) == 0;
}
template <typename T>
unsigned __match_any_sync(unsigned mask, T value, PlumbPlace at = PlumbPlace::current()) {
  using namespace plumb::gpu::emulated;
  return static_cast<unsigned>(block().exchange(mask, packed(value), 0, take_matches, at));
}
// There is no converged group to query: the active mask is the calling lane.
inline unsigned __activemask() {
  return 1U << plumb::gpu::emulated::block().lane();
}

template <typename T>
T __reduce_add_sync(unsigned mask, T value, PlumbPlace at = PlumbPlace::current()) {
  return plumb::gpu::emulated::reduce<T, plumb::gpu::emulated::Sum>(mask, value, at);
}
template <typename T>
T __reduce_min_sync(unsigned mask, T value, PlumbPlace at = PlumbPlace::current()) {
  return plumb::gpu::emulated::reduce<T, plumb::gpu::emulated::Least>(mask, value, at);
}
template <typename T>
T __reduce_max_sync(unsigned mask, T value, PlumbPlace at = PlumbPlace::current()) {
  return plumb::gpu::emulated::reduce<T, plumb::gpu::emulated::Greatest>(mask, value, at);
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value, PlumbPlace at = PlumbPlace::current()) {
  return plumb::gpu::emulated::reduce<unsigned, plumb::gpu::emulated::AllBits>(mask, value, at);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value, PlumbPlace at = PlumbPlace::current()) {
  return plumb::gpu::emulated::reduce<unsigned, plumb::gpu::emulated::AnyBits>(mask, value, at);
}
