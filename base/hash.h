// FNV-1a, 64 bit (Fowler, Noll, Vo; draft-eastlake-fnv): for telling texts and tensors apart, not for
// secrets.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace plumb {

inline constexpr std::uint64_t kFnvOffset = 0xcbf29ce484222325;  // the hash of no bytes

// The hash of the bytes behind `hash` followed by `bytes`.
inline std::uint64_t fnv1a(std::string_view bytes, std::uint64_t hash = kFnvOffset) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

inline std::uint64_t fnv1a(std::span<const float> values, std::uint64_t hash = kFnvOffset) {
  return fnv1a({reinterpret_cast<const char*>(values.data()), values.size_bytes()}, hash);
}

}  // namespace plumb
