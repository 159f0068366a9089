// Rows that lie anywhere in memory: what the CPU can't foresee, it is told.
#pragma once

#include <cstddef>

namespace plumb::cpu {

// So many rows ahead of the one that is worked on: time for memory to answer, few enough for the first cache.
inline constexpr std::ptrdiff_t kRowsAhead = 6;

inline void prefetch_row(const float* row, std::ptrdiff_t columns) {
  constexpr std::ptrdiff_t kFloatsPerCacheLine = 16;
  for (std::ptrdiff_t c = 0; c < columns; c += kFloatsPerCacheLine) __builtin_prefetch(row + c);
}

}  // namespace plumb::cpu
