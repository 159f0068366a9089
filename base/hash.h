// FNV-1a, 64 bit (Fowler, Noll, Vo; draft-eastlake-fnv): for telling texts and tensors apart, not for
// secrets.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>

namespace plumb {

inline constexpr std::uint64_t kFnvOffset = 0xcbf29ce484222325;  // the hash of no bytes

inline constexpr std::uint64_t kFnvPrime = 0x100000001b3;

// The hash of the bytes behind `hash` followed by `bytes`.
inline std::uint64_t fnv1a(std::string_view bytes, std::uint64_t hash = kFnvOffset) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * kFnvPrime;
  return hash;
}

// The same over words of 32 bits instead of bytes.
inline std::uint64_t fnv1a(std::span<const float> values, std::uint64_t hash = kFnvOffset) {
  for (const float value : values) hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * kFnvPrime;
  return hash;
}

}  // namespace plumb
